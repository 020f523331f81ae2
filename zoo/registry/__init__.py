"""Environments by ID: registered, built, with their rules, reference points and the algorithms that fit."""

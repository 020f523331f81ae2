"""Audits of decisions that were already made: from a table or file of logged decisions to figures, words and a page."""

from sb3_fair.audit.audit import audit, audit_file
from sb3_fair.audit.result import Audit

__all__ = ["Audit", "audit", "audit_file"]

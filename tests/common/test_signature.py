"""Are files of this user told from those of others?"""

import stat

import pytest

from sb3_fair.common import signature
from sb3_fair.common.signature import is_signature, is_signed, key_file, sign


@pytest.fixture
def users(tmp_path, monkeypatch):
    """Lets another user go on."""

    def become(name):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / name))

    become("one")
    return become


def test_a_signature_is_of_one_user_and_one_content(users):
    signed = signature.signature(b"content")
    assert is_signature(signed, b"content") and signed == signature.signature(b"content")
    assert stat.S_IMODE(key_file().stat().st_mode) == 0o600
    assert not is_signature(signed, b"contents")
    for other in (None, "", 3, signed[:-1], "é" * 64):
        assert not is_signature(other, b"content")
    users("another")
    assert not is_signature(signed, b"content")
    signature.signature(b"")
    assert not is_signature(signed, b"content")


@pytest.mark.parametrize("size", [0, 10, 3 * 2**20 + 1])
def test_a_file_carries_its_signature_at_its_end(size, users, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(size))
    assert not is_signed(file)
    sign(file)
    assert is_signed(file) and file.read_bytes()[:size] == bytes(size)
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole + b" ", bytes([whole[0] ^ 1]) + whole[1:], b""):
        (tmp_path / "damaged").write_bytes(damaged)
        assert not is_signed(tmp_path / "damaged")
    users("another")
    assert not is_signed(file)


def test_where_no_key_can_be_kept_nothing_is_signed_with_a_warning(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="no key can be kept"):
        assert signature.signature(b"content") is None
    assert not is_signature("0" * 64, b"content")


def test_a_damaged_key_signs_nothing_with_a_warning(users):
    signed = signature.signature(b"content")
    key_file().write_bytes(b"")
    with pytest.warns(UserWarning, match="key is no key of 32 bytes"):
        assert signature.signature(b"content") is None
    with pytest.warns(UserWarning, match="key is no key of 32 bytes"):
        assert not is_signature(signed, b"content")

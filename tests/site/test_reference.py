"""The reference documents what every face has of its own."""

import re
from pathlib import Path

import pytest

from d2l_compat.frameworks import FACES
from tools.site.reference import OWN

ANOTHER_NAME = {"EncoderBlock"}  # of TransformerEncoderBlock


@pytest.mark.parametrize("face", [framework.face for framework in FACES.values()])
def test_a_face_page_has_its_names_and_no_others(site: Path, face: str) -> None:
    page = site.joinpath("en", "reference", "d2l_compat", face, "index.html").read_text()
    documented = re.findall(rf'id="d2l_compat\.{face}\.(\w+)"', page)
    assert {*documented} == OWN[f"d2l_compat.{face}"] - ANOTHER_NAME

"""Builds the wheel for pip. A backend of our own needs no download, so that `pip install` works offline."""
import base64
import hashlib
import re
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parent


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = (FOLDER / "pyproject.toml").read_text()
    version, summary, python = (re.search(f'^{name} = "(.*)"$', project, re.M)[1] for name in ("version", "description", "requires-python"))
    info = f"pgcue-{version}.dist-info"
    files = {f"pgcue/{file.name}": file.read_bytes() for file in sorted((FOLDER / "pgcue").glob("*.[pt]*")) if file.is_file()}
    metadata = f"Metadata-Version: 2.1\nName: pgcue\nVersion: {version}\nSummary: {summary}\nRequires-Python: {python}\n"
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: pgcue\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    digest = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() for name, data in files.items()}
    record = [f"{name},sha256={digest[name]},{len(data)}" for name, data in files.items()] + [f"{info}/RECORD,,"]
    files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    wheel = f"pgcue-{version}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel

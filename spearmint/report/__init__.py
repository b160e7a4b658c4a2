from pathlib import Path
from spearmint.session import Session


def write_report(session: Session, folder: Path) -> Path:
    raise NotImplementedError

"""Loggers below "nixl": INFO and above to stdout, unless NIXL_LOG_LEVEL or NIXL_DEBUG_LOGGING say otherwise."""

from __future__ import annotations

import logging
import os
import sys

_LEVELS = {"TRACE": logging.DEBUG, "DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING,
           "WARNING": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL, "CRITICAL": logging.CRITICAL}
_FORMAT = "%(asctime)s NIXL %(levelname)-7s %(filename)s:%(lineno)d %(message)s"


class _Stdout(logging.StreamHandler):
    """Writes to what sys.stdout is now, so that whoever replaces it gets the lines."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self):  # type: ignore[no-untyped-def, override]
        return sys.stdout


def set_log_level_by_env(nixl_logger: logging.Logger) -> None:
    if os.environ.get("NIXL_DEBUG_LOGGING", "").strip().lower() in ("1", "y", "yes", "on", "true"):
        nixl_logger.setLevel(logging.DEBUG)
    level = _LEVELS.get(os.environ.get("NIXL_LOG_LEVEL", "").strip().upper())
    if level is not None:
        nixl_logger.setLevel(level)


def setup_logging() -> None:
    """Once; later calls change nothing."""
    root = logging.getLogger("nixl")
    if any(isinstance(handler, _Stdout) for handler in root.handlers):
        return
    handler = _Stdout()
    handler.setFormatter(logging.Formatter(_FORMAT, datefmt="%Y-%m-%d %H:%M:%S"))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    root.propagate = False
    set_log_level_by_env(root)


def get_logger(name: str) -> logging.Logger:
    setup_logging()
    return logging.getLogger(name if name == "nixl" or name.startswith("nixl.") else f"nixl.{name}")

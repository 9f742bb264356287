"""The command `hawser`, as the wheel brings it: `python -m hawser`, and the script `hawser` beside the interpreter."""

import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).parent / "bin" / "hawser"
    try:
        os.execv(program, ["hawser", *sys.argv[1:]])
    except OSError as error:
        # A source tree's packages lie without it.
        sys.exit(f"hawser: the command cannot be started from {program}: {error.strerror}. It comes with the wheel: "
                 "pip install hawser")


if __name__ == "__main__":
    main()

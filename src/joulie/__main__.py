"""`python -m joulie` is `joulie`."""

from joulie.cli.main import main

if __name__ == "__main__":
    main()

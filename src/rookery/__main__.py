"""`python -m rookery`."""

from rookery.cli.entry import main

if __name__ == "__main__":
    main()

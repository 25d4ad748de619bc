"""`python -m dflashctl`."""

from dflashctl.main import main

main()

"""The report: tables of a profile's results, and one self-contained page that shows them."""

"""Excess of turns of phrase over the goals of words.py, by folder and kind of text. The numbers only fall.

`words.py --table` prints the entries of today.
"""

LISTED = {
}

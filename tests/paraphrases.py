"""Short texts of three kinds, each asked about in other words: what only meaning finds."""

from __future__ import annotations

PRODUCTS = (
    ("Insulated steel bottle, keeps coffee warm for ten hours", "flask for hot drinks"),
    ("Cordless vacuum cleaner with two batteries", "machine that sucks up dust from the carpet"),
    ("Folding bicycle with a small frame", "bike for commuting by train"),
    ("Waterproof hiking boots, leather, size 43", "shoes for walking in the mountains"),
    ("Wireless headphones that cancel noise", "listen to music in peace on the plane"),
    ("Cast iron frying pan, 28 cm", "something to cook steak in"),
    ("Baby stroller with large wheels", "carriage for a small child"),
    ("Electric lawn mower, 1,600 watts", "tool to cut the grass in the garden"),
    ("Down sleeping bag for cold nights", "bedding for winter camping"),
    ("Desk lamp with dimmable light", "brightness for reading at the table"),
    ("Inflatable kayak for two people", "small boat to paddle on the lake"),
    ("Espresso machine with milk frother", "makes cappuccino at home"),
)

TICKETS = (
    ("Users cannot log in after resetting their password", "sign-in fails with new credentials"),
    ("Invoice PDF shows the wrong tax rate", "bill lists an incorrect VAT percentage"),
    ("App crashes when uploading large photos", "program quits while sending big pictures"),
    ("Search results load very slowly on Mondays", "finding things takes too long at the start of the week"),
    ("Emails are delivered twice to subscribers", "duplicate newsletters in the inbox"),
    ("Dark theme makes buttons invisible", "controls cannot be seen at night mode colors"),
    ("Payment by credit card is declined in Canada", "customers in Toronto are unable to pay with Visa"),
    ("Export to spreadsheet drops the last column", "Excel file is missing data"),
    ("Calendar shows meetings in the wrong time zone", "appointments are displayed some hours off"),
    ("Keyboard shortcuts do not work in Firefox", "hotkeys broken in the browser"),
    ("Database backup failed because the disk is full", "no storage space left for the nightly copy"),
    ("Mobile menu covers the whole screen", "navigation on phones hides everything else"),
)

PEOPLE = (
    ("Ana Ruiz, pediatrician at the children's hospital", "doctor who treats kids"),
    ("Tom Baker, repairs cars in a garage downtown", "mechanic for my vehicle"),
    ("Li Wei, teaches mathematics at high school", "math teacher for teenagers"),
    ("Olga Petrova, translates novels from Russian", "language expert for literature"),
    ("Sam Okafor, chef of a seafood restaurant", "cook who prepares fish"),
    ("Mia Lund, designs houses and bridges", "architect of buildings"),
    ("Raj Patel, pilot of passenger jets", "flies airplanes for an airline"),
    ("Eva Novak, lawyer for tenants and rents", "attorney in disputes with landlords"),
    ("Jim Doyle, plumber, fixes leaking pipes", "water drips from the tap, who helps"),
    ("Nora Haddad, violinist in the city orchestra", "musician who plays classical concerts"),
    ("Ken Sato, trains dogs and their owners", "my puppy does not obey"),
    ("Ines Costa, dentist with a practice by the river", "toothache, whom to see"),
)

SETS = {"products": PRODUCTS, "tickets": TICKETS, "people": PEOPLE}

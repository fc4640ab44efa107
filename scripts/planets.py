#!/usr/bin/env python3
"""Writes scenarios/planets.csv and scenarios/planets-2010.csv from the ephemeris DE421.

    python3 -m venv .venv && .venv/bin/pip install jplephem==2.24 skyfield-data==7.0.0
    .venv/bin/python scripts/planets.py

State vectors: NASA JPL's DE421 (the file de421.bsp of the Python package skyfield-data), read by jplephem.
Masses: the GM values of DE421's header, in au^3/day^2.
"""

import pathlib

import skyfield_data
from jplephem.spk import SPK

START, STOP = 2451545.0, 2455197.5  # Julian dates, TDB: J2000 and 3652.5 days later
AU_KM = 149597870.6996262  # DE421's astronomical unit: its GM values are in this unit
YEAR_DAYS = 365.25  # the year of units.system = "solar"

# GM in au^3/day^2: header of DE421; W. M. Folkner, J. G. Williams & D. H. Boggs, "The Planetary and Lunar
# Ephemeris DE 421", IPN Progress Report 42-178 (2009). In km^3/s^2 they are the round numbers printed there
# (Jupiter with satellites 126712764.800, Pluto 977.000). The Sun's is the square of Gauss's constant.
GM_SUN = 0.295912208285591100e-03
BODIES = [  # name, NAIF number relative to the solar system's barycenter, GM of the planet with its satellites
    ("Sun", 10, GM_SUN),
    ("Mercury", 1, 0.491254957186794000e-10),
    ("Venus", 2, 0.724345233269844100e-09),
    ("Earth+Moon", 3, 0.899701140826804900e-09),
    ("Mars", 4, 0.954954869562239000e-10),
    ("Jupiter", 5, 0.282534584085505000e-06),
    ("Saturn", 6, 0.845970607330847800e-07),
    ("Uranus", 7, 0.129202482579265000e-07),
    ("Neptune", 8, 0.152435910924974000e-07),
    ("Pluto", 9, 0.217844105199052000e-11),
]


def write(path, kernel, date, remark):
    """One row per body; Python's repr of a float is exact to the last bit."""
    lines = [
        "# The Sun, the eight planets (Earth and Moon as one) and Pluto, written by scripts/planets.py.",
        f"# Epoch: JD {date} TDB{remark}. Origin: the solar system's barycenter. Axes: ICRF (equatorial).",
        "# In au, au/yr (years of 365.25 d) and solar masses, as the system of units \"solar\" has them.",
        f"# Positions, velocities: JPL DE421 (de421.bsp), au = {AU_KM} km. Satellites are included in their planets.",
        "# Masses: GM of DE421's header (Folkner, Williams & Boggs 2009, IPN Progress Report 42-178) over the Sun's.",
        "name,x,y,z,vx,vy,vz,mass",
    ]
    for name, naif, gm in BODIES:
        position, velocity = kernel[0, naif].compute_and_differentiate(date)  # km, km/day
        numbers = [float(x) / AU_KM for x in position] + [float(v) / AU_KM * YEAR_DAYS for v in velocity]
        lines.append(",".join([name, *(repr(x) for x in [*numbers, gm / GM_SUN])]))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def main():
    scenarios = pathlib.Path(__file__).resolve().parent.parent / "scenarios"
    bsp = pathlib.Path(skyfield_data.get_skyfield_data_path()) / "de421.bsp"
    with SPK.open(str(bsp)) as kernel:
        write(scenarios / "planets.csv", kernel, START, " (J2000)")
        write(scenarios / "planets-2010.csv", kernel, STOP, ", 3652.5 days after J2000: what the test compares with")


if __name__ == "__main__":
    main()

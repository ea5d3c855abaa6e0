#!/usr/bin/env python3
"""Draws the data beside the jobs of this folder, the same bytes each time: draw.py [FOLDER]

shells.csv    a table: words, numbers, some missing, a column that numbers the rows; 3 classes
rents.csv     a table with a number to learn, divided by ';'
visits.csv    clicks of users on items; a click depends on both
signals.npz   records of 8 numbers with a class each, in one archive of NumPy
x.npy, y.npy  sequences of 12 steps of 2 numbers, and their classes
shapes/       images of 16 x 16 pixels, a folder for each class
"""
import math
import pathlib
import random
import struct
import sys
import zipfile
import zlib


def draw_shells(folder):
    draw = random.Random("shells")
    kinds = {"cockle": (34, 30, 22), "mussel": (62, 28, 4), "scallop": (48, 50, 16)}
    lines = ["row,beach,length_mm,width_mm,ridges,weight_g,species"]
    for row in range(1, 241):
        species = draw.choice(sorted(kinds))
        length, width, ridges = (draw.gauss(mean, 0.12 * mean) for mean in kinds[species])
        weight = f"{length * width / 90 * draw.uniform(0.8, 1.2):.1f}" if draw.random() > 0.04 else ""
        beach = draw.choice({"cockle": ["north", "pier"], "mussel": ["pier"], "scallop": ["south", "north"]}[species])
        lines.append(f"{row},{beach},{length:.1f},{width:.1f},{ridges:.0f},{weight},{species}")
    (folder / "shells.csv").write_text("\n".join(lines) + "\n")


def draw_rents(folder):
    draw = random.Random("rents")
    lines = ["district;rooms;area_m2;floor;year;rent"]
    for _ in range(300):
        district = draw.choice(["old town", "harbour", "hill"])
        rooms, floor, year = draw.randint(1, 5), draw.randint(0, 6), draw.randint(1900, 2020)
        area = rooms * draw.uniform(15, 28)
        rent = area * {"old town": 14, "harbour": 11, "hill": 9}[district] + 15 * floor + (year - 1900) + draw.gauss(0, 40)
        lines.append(f"{district};{rooms};{area:.1f};{floor};{year};{rent:.0f}")
    (folder / "rents.csv").write_text("\n".join(lines) + "\n")


def draw_visits(folder):
    draw = random.Random("visits")
    tastes = {f"u{user:02}": [draw.uniform(-1, 1) for _ in range(2)] for user in range(24)}
    offers = {f"item-{item}": [draw.uniform(-1, 1) for _ in range(2)] for item in range(10)}
    lines = ["user,item,hour,price,click"]
    for _ in range(700):
        user, item = draw.choice(sorted(tastes)), draw.choice(sorted(offers))
        hour, price = draw.randint(0, 23), draw.uniform(1, 20)
        score = 3 * sum(a * b for a, b in zip(tastes[user], offers[item])) - 0.08 * (price - 10) + draw.gauss(0, 0.3)
        lines.append(f"{user},{item},{hour},{price:.2f},{int(score > 0)}")
    (folder / "visits.csv").write_text("\n".join(lines) + "\n")


def npy(kind, shape, values):
    """An array as NumPy saves it; kind: '<f4'."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    code = {"<f2": "e", "<f4": "f", "|u1": "B"}[kind]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values)


def draw_signals(folder):
    draw = random.Random("signals")
    values, labels = [], []
    for _ in range(320):
        label = draw.randrange(4)
        labels.append(label)
        values += [round(math.sin((label + 1) * place * 0.7) + draw.gauss(0, 0.4), 3) for place in range(8)]
    with zipfile.ZipFile(folder / "signals.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in [("x", npy("<f2", (320, 8), values)), ("y", npy("|u1", (320,), labels))]:
            archive.writestr(zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0)), array, zipfile.ZIP_DEFLATED)


def draw_sequences(folder):
    draw = random.Random("sequences")
    values, labels = [], []
    for _ in range(200):
        label = draw.randrange(2)
        labels.append(label)
        start, direction = draw.uniform(0, 6), 1 if label else -1
        for step in range(12):
            angle = start + direction * step * 0.5
            values += [math.cos(angle) + draw.gauss(0, 0.1), math.sin(angle) + draw.gauss(0, 0.1)]
    (folder / "x.npy").write_bytes(npy("<f2", (200, 12, 2), values))
    (folder / "y.npy").write_bytes(npy("|u1", (200,), labels))


def png(side, pixels):
    """A grey image, from the brightness of each pixel."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(pixels[row * side:(row + 1) * side]) for row in range(side))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def draw_shapes(folder):
    draw = random.Random("shapes")
    inside = {
        "circle": lambda x, y, size: x * x + y * y <= size * size,
        "cross": lambda x, y, size: min(abs(x), abs(y)) <= 1 and max(abs(x), abs(y)) <= size,
        "square": lambda x, y, size: max(abs(x), abs(y)) <= size * 0.8,
    }
    for name, holds in inside.items():
        (folder / "shapes" / name).mkdir(parents=True, exist_ok=True)
        for number in range(30):
            size, x, y = draw.uniform(4, 6), draw.uniform(6.5, 8.5), draw.uniform(6.5, 8.5)
            bright, dark = draw.randint(170, 250), draw.randint(0, 60)
            pixels = [bright if holds(column - x, row - y, size) else dark for row in range(16) for column in range(16)]
            (folder / "shapes" / name / f"{number:02}.png").write_bytes(png(16, pixels))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for draw in (draw_shells, draw_rents, draw_visits, draw_signals, draw_sequences, draw_shapes):
        draw(folder)


if __name__ == "__main__":
    main()

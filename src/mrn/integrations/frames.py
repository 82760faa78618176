"""Pictures of episodes: marked, side by side, and as a film in the bytes of a file."""

import io
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from mrn.utils.errors import RunError, UserError
from mrn.utils.extras import import_extra

EXTRA = "video"
REACHED, NOT_YET = (0, 114, 178), (230, 159, 0)
"""Blue and orange, which people who see few colours can tell apart, too."""
EMPTY = 24
"""Grey of a place in a grid that has no episode."""
GIF_FPS = 15.0
"""Frames in a second of a GIF, at most: every frame costs."""
GIF_COLOURS = 128

Frames = Iterable[np.ndarray]
"""Pictures of shape (height, width, 3), uint8."""


def fitted(picture: np.ndarray, height: int) -> np.ndarray:
    """A picture in another size; both sides are even numbers, which films need."""
    image = import_extra("PIL.Image", EXTRA)
    old_height, old_width, _ = picture.shape
    size = (max(2, round(height * old_width / old_height / 2) * 2), height)
    if (old_width, old_height) == size:
        return picture
    return np.asarray(image.fromarray(picture).resize(size, image.Resampling.LANCZOS))


def marked(picture: np.ndarray, step: int, reached: bool) -> np.ndarray:
    """A picture that says how far its episode is, and whether it is at its goal."""
    image = import_extra("PIL.Image", EXTRA).fromarray(picture)
    draw = import_extra("PIL.ImageDraw", EXTRA).Draw(image)
    colour = REACHED if reached else NOT_YET
    border, letters = max(2, picture.shape[0] // 60), max(10, picture.shape[0] // 20)
    draw.rectangle((0, 0, image.width - 1, image.height - 1), outline=colour, width=border)
    font = import_extra("PIL.ImageFont", EXTRA).load_default(letters)
    text, corner = f"step {step} - {'reached' if reached else 'not yet'}", (2 * border, 2 * border)
    _, _, right, bottom = draw.textbbox(corner, text, font=font)
    draw.rectangle((0, 0, right + 2 * border, bottom + border), fill=colour)
    draw.text(corner, text, fill="white" if reached else "black", font=font)
    return np.asarray(image)


def grid_of(episodes: int) -> tuple[int, int]:
    """Rows and columns of a picture with so many episodes, as square as can be."""
    columns = math.ceil(math.sqrt(episodes))
    return math.ceil(episodes / columns), columns


def side_by_side(films: Sequence[Sequence[np.ndarray]]) -> Iterator[np.ndarray]:
    """Films as one; those that are over hold their last frame."""
    rows, columns = grid_of(len(films))
    height, width, _ = films[0][0].shape
    for t in range(max(map(len, films))):
        picture = np.full((rows * height, columns * width, 3), EMPTY, np.uint8)
        for place, film in enumerate(films):
            y, x = place // columns * height, place % columns * width
            picture[y : y + height, x : x + width] = film[min(t, len(film) - 1)]
        yield picture


def mp4(frames: Frames, fps: float) -> bytes:
    """A film as H.264 in MP4, which every browser plays; its sides are even numbers.

    Raises:
        RunError: The encoder fails.
    """
    program = import_extra("imageio_ffmpeg", EXTRA).get_ffmpeg_exe()
    waiting = iter(frames)
    first = next(waiting)
    height, width, _ = first.shape
    # The file is written in a folder of its own, because an MP4 cannot be written in one go.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        file = Path(folder) / "film.mp4"
        words = [program, "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
        words += ["-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-", "-an"]
        words += ["-vcodec", "libx264", "-crf", "20", "-pix_fmt", "yuv420p"]
        words += ["-fflags", "+bitexact", "-movflags", "+faststart", str(file)]
        encoder = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors
        )
        try:
            assert encoder.stdin is not None
            try:
                for frame in chain([first], waiting):
                    encoder.stdin.write(np.ascontiguousarray(frame).data)
                encoder.stdin.close()
            except BrokenPipeError:  # it has ended, and has said why
                pass
            failed = encoder.wait()
        except BaseException:
            encoder.kill()
            raise
        finally:
            encoder.wait()
        if failed:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().partition("\n")[0]
            raise RunError(f"ffmpeg cannot encode the video: {said or f'exit code {failed}'}")
        return file.read_bytes()


def gif(frames: Frames, fps: float) -> bytes:
    """A film as an animated GIF that is played again and again: fewer frames, few colours."""
    image = import_extra("PIL.Image", EXTRA)
    every = math.ceil(fps / GIF_FPS)
    kept = [image.fromarray(frame) for number, frame in enumerate(frames) if number % every == 0]
    palette = _common_palette(kept, image)
    # Without dithering, what stands still has the same colours in all frames, and costs nothing.
    few = [frame.quantize(palette=palette, dither=image.Dither.NONE) for frame in kept]
    content = io.BytesIO()
    few[0].save(
        content,
        format="GIF",
        save_all=True,
        append_images=few[1:],
        duration=round(1000 * every / fps),
        loop=0,
    )
    return content.getvalue()


def _common_palette(frames: Sequence[Any], image: Any) -> Any:
    """Colours for all frames, from some of them."""
    some = frames[:: max(1, len(frames) // 8)]
    height = some[0].height
    strip = image.new("RGB", (some[0].width, height * len(some)))
    for place, frame in enumerate(some):
        strip.paste(frame, (0, place * height))
    # The usual method gives colours to what is large, and a goal is a few red pixels.
    return strip.quantize(GIF_COLOURS, method=image.Quantize.FASTOCTREE)


WRITERS: dict[str, Callable[[Frames, float], bytes]] = {".mp4": mp4, ".gif": gif}
"""By the ending of the file's name."""


def check_packages(ending: str) -> None:
    """Make sure, before the work, that what a file of this ending takes is installed.

    Raises:
        UserError: It is not; says the command that installs it.
    """
    import_extra("PIL.Image", EXTRA)
    if ending == ".mp4":
        package = import_extra("imageio_ffmpeg", EXTRA)
        try:
            package.get_ffmpeg_exe()
        except RuntimeError as error:  # its wheel has none for this machine
            raise UserError(
                f"{error}; install ffmpeg, or write a .gif, which does without"
            ) from None

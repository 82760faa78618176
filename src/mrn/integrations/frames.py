"""Video frames: resizing, annotation, grids, and encoding to MP4 and GIF."""

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
REACHED_COLOR, NOT_REACHED_COLOR = (0, 114, 178), (230, 159, 0)
"""Blue and orange, a colorblind-safe pair."""
EMPTY_GRAY = 24
"""Gray level of grid cells without an episode."""
GIF_MAX_FPS = 15.0
"""Maximum frame rate of a GIF, which limits the file size."""
GIF_COLORS = 128

Frames = Iterable[np.ndarray]
"""Frames of shape (height, width, 3), uint8."""


def resize_frame(frame: np.ndarray, height: int) -> np.ndarray:
    """Resize a frame to an even height, with an even width, as video encoders require."""
    image = import_extra("PIL.Image", EXTRA)
    old_height, old_width, _ = frame.shape
    size = (max(2, round(height * old_width / old_height / 2) * 2), height)
    if (old_width, old_height) == size:
        return frame
    return np.asarray(image.fromarray(frame).resize(size, image.Resampling.LANCZOS))


def label_height(height: int) -> int:
    """Return the even height of the label above a frame."""
    return 2 * round(max(10, height // 20) * 0.75)


def annotate_frame(frame: np.ndarray, step: int, reached: bool) -> np.ndarray:
    """Add a label above a frame, which must not hide the goal: step, and success in color."""
    height, width, _ = frame.shape
    label, border = label_height(height), max(2, height // 60)
    color = REACHED_COLOR if reached else NOT_REACHED_COLOR
    canvas = np.full((label + height, width, 3), color, np.uint8)
    canvas[label:] = frame
    image = import_extra("PIL.Image", EXTRA).fromarray(canvas)
    draw = import_extra("PIL.ImageDraw", EXTRA).Draw(image)
    draw.rectangle((0, 0, width - 1, image.height - 1), outline=color, width=border)
    font = import_extra("PIL.ImageFont", EXTRA).load_default(max(10, height // 20))
    text, fill = (
        (f"step {step} - reached", "white") if reached else (f"step {step} - not yet", "black")
    )
    draw.text((2 * border, label // 2), text, fill, font, anchor="lm")
    return np.asarray(image)


def grid_shape(episodes: int) -> tuple[int, int]:
    """Return the rows and columns of the most square grid for a number of episodes."""
    columns = math.ceil(math.sqrt(episodes))
    return math.ceil(episodes / columns), columns


def tile_episodes(episodes: Sequence[Sequence[np.ndarray]]) -> Iterator[np.ndarray]:
    """Yield frames that show all episodes in a grid; shorter ones hold their last frame."""
    rows, columns = grid_shape(len(episodes))
    height, width, _ = episodes[0][0].shape
    for t in range(max(map(len, episodes))):
        tiled = np.full((rows * height, columns * width, 3), EMPTY_GRAY, np.uint8)
        for index, frames in enumerate(episodes):
            y, x = index // columns * height, index % columns * width
            tiled[y : y + height, x : x + width] = frames[min(t, len(frames) - 1)]
        yield tiled


def encode_mp4(frames: Frames, fps: float) -> bytes:
    """Encode frames of even width and height as H.264 in MP4, which every browser plays.

    Raises:
        RunError: The encoder fails.
    """
    ffmpeg = import_extra("imageio_ffmpeg", EXTRA).get_ffmpeg_exe()
    remaining = iter(frames)
    first = next(remaining)
    height, width, _ = first.shape
    # ffmpeg needs a seekable file for MP4, so it writes to a temporary folder.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        file = Path(folder) / "video.mp4"
        command = [ffmpeg, "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
        command += ["-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-", "-an"]
        command += ["-vcodec", "libx264", "-crf", "20", "-pix_fmt", "yuv420p"]
        command += ["-fflags", "+bitexact", "-movflags", "+faststart", str(file)]
        encoder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors
        )
        try:
            assert encoder.stdin is not None
            try:
                for frame in chain([first], remaining):
                    encoder.stdin.write(np.ascontiguousarray(frame).data)
                encoder.stdin.close()
            except BrokenPipeError:  # ffmpeg exited; its exit code is checked below
                pass
            failed = encoder.wait()
        except BaseException:
            encoder.kill()
            raise
        finally:
            encoder.wait()
        if failed:
            errors.seek(0)
            message = errors.read().decode(errors="replace").strip().partition("\n")[0]
            raise RunError(f"ffmpeg cannot encode the video: {message or f'exit code {failed}'}")
        return file.read_bytes()


def encode_gif(frames: Frames, fps: float) -> bytes:
    """Encode frames as a looping GIF with a reduced frame rate and palette."""
    image = import_extra("PIL.Image", EXTRA)
    stride = math.ceil(fps / GIF_MAX_FPS)
    kept = [image.fromarray(frame) for index, frame in enumerate(frames) if index % stride == 0]
    palette = _shared_palette(kept, image)
    # Without dithering, static areas have the same colors in all frames and compress well.
    quantized = [frame.quantize(palette=palette, dither=image.Dither.NONE) for frame in kept]
    content = io.BytesIO()
    quantized[0].save(
        content,
        format="GIF",
        save_all=True,
        append_images=quantized[1:],
        duration=round(1000 * stride / fps),
        loop=0,
    )
    return content.getvalue()


def _shared_palette(frames: Sequence[Any], image: Any) -> Any:
    """Return one palette for all frames, computed from a sample of them."""
    sample = frames[:: max(1, len(frames) // 8)]
    height = sample[0].height
    strip = image.new("RGB", (sample[0].width, height * len(sample)))
    for index, frame in enumerate(sample):
        strip.paste(frame, (0, index * height))
    # The default method favors large areas, and the goal is only a few red pixels.
    return strip.quantize(GIF_COLORS, method=image.Quantize.FASTOCTREE)


ENCODERS: dict[str, Callable[[Frames, float], bytes]] = {".mp4": encode_mp4, ".gif": encode_gif}
"""Encoders by file suffix."""


def require_packages(suffix: str) -> None:
    """Check that the packages for a file format are installed.

    Raises:
        UserError: A package is missing; includes the install command.
    """
    import_extra("PIL.Image", EXTRA)
    if suffix == ".mp4":
        package = import_extra("imageio_ffmpeg", EXTRA)
        try:
            package.get_ffmpeg_exe()
        except RuntimeError as error:  # its wheel contains no ffmpeg for this platform
            raise UserError(
                f"{error}; install ffmpeg, or write a .gif, which does not need it"
            ) from None

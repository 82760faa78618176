"""Tests of grids and of MP4 and GIF encoding."""

import io

import numpy as np
import pytest
from PIL import Image

import mrn
from mrn.integrations.frames import encode_gif, encode_mp4, tile_episodes


def test_finished_episode_holds_its_last_frame():
    episodes = [
        [np.full((2, 2, 3), value, np.uint8) for value in values] for values in ((1, 2, 3), (7,))
    ]
    shown = [[int(frame[0, 0, 0]), int(frame[0, 2, 0])] for frame in tile_episodes(episodes)]
    assert shown == [[1, 7], [2, 7], [3, 7]]


def test_gif_drops_frames_but_keeps_the_speed():
    frames = np.zeros((50, 8, 50, 3), np.uint8)
    frames[range(50), :, range(50)] = 255  # a line that moves by one pixel per frame
    with Image.open(io.BytesIO(encode_gif(frames, 25))) as gif:
        assert (gif.n_frames, gif.info["duration"]) == (25, 80)
        gif.seek(24)
        assert np.argwhere(np.asarray(gif.convert("L"))[4] > 128).tolist() == [[48]]


def test_encoder_failure_shows_the_message_of_ffmpeg():
    with pytest.raises(mrn.RunError, match="ffmpeg cannot encode the video: .*not divisible by 2"):
        encode_mp4([np.zeros((64, 65, 3), np.uint8)] * 3, 10)

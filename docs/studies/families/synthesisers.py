"""Words said by eSpeak NG and Flite, as Debian has them (``apt-get install espeak-ng flite``)."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import wavfile

ESPEAK_HERTZ = 22_050


class Espeak:
    """The library of eSpeak NG: a word takes it a thousandth of a second, starting the program a tenth."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libespeak-ng.so.1")
        if self.library.espeak_Initialize(2, 0, None, 0) != ESPEAK_HERTZ:  # 2: returns when all has been heard
            raise RuntimeError(f"eSpeak NG has no data, or does not speak with {ESPEAK_HERTZ} samples a second.")
        self.heard: list[NDArray[np.int16]] = []
        listener = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
        self.listener = listener(self.listen)  # kept, as the library only has its address
        self.library.espeak_SetSynthCallback(self.listener)

    def listen(self, samples: Any, count: int, _: int) -> int:
        if samples and count:
            self.heard.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0

    def say(self, word: str, voice: str, speed: int, pitch: int, melody: int) -> NDArray[np.int16]:
        """Return a word in words a minute, and with a pitch and its range from 0 to 100."""
        if self.library.espeak_SetVoiceByName(voice.encode()):
            raise ValueError(f"eSpeak NG has no voice {voice}.")
        for parameter, value in ((1, speed), (3, pitch), (4, melody)):
            self.library.espeak_SetParameter(parameter, value, 0)
        self.heard.clear()
        text = ctypes.create_string_buffer(word.encode())
        self.library.espeak_Synth(text, ctypes.c_size_t(len(text)), 0, 1, 0, 1, None, None)
        return np.concatenate(self.heard)


def say_by_flite(word: str, voice: str, stretch: float) -> tuple[int, NDArray[np.int16]]:
    """Return the samples in a second, and a word that is so many times as long as usual."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "word.wav"
        options = ["-voice", voice, "--setf", f"duration_stretch={stretch:.2f}", "-t", word]
        subprocess.run(["flite", *options, str(file)], check=True)
        rate, samples = wavfile.read(file)
    return rate, samples

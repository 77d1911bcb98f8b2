// SPDX-License-Identifier: Apache-2.0
// How the Whisper program reads a sound: a WAV file's samples, and log-mel frames compared with PyTorch's in f64.
#include "models/whisper/log_mel.h"
#include "models/whisper/wave_file.h"

#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

const std::string folder = KILN_SOURCE "/models/whisper/cases/whisper/";

std::string wave_of(const std::string &change = "", std::size_t at = 0) {
  std::ifstream stream(folder + "speech.wav", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  return bytes.replace(at, change.size(), change);
}

/// Returns the error message, or the number of samples.
std::string read(const std::string &bytes) {
  // Each test runs in a separate process, possibly at the same time.
  const std::string path = ::testing::TempDir() + std::to_string(getpid()) + "speech.wav";
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    return std::to_string(read_wave(path, log_mel::rate).size());
  } catch (const std::runtime_error &error) {
    return error.what();
  }
}

// The second window of the sound, a part of which is silence. oracle: the transform by its definition.
TEST(Speech, MakesFrames) {
  constexpr std::size_t bins = 80, frames = 16, window = frames * log_mel::step;
  std::vector<float> samples = read_wave(folder + "speech.wav", log_mel::rate);
  ASSERT_EQ(samples.size(), window + 900);
  samples.erase(samples.begin(), samples.begin() + window);
  samples.resize(window);
  const std::vector<float> ours = log_mel::frames(samples, bins);
  ASSERT_EQ(ours.size(), bins * frames);
  std::ifstream wanted(folder + "log_mel.txt");
  for (std::size_t i = 0; i < ours.size(); ++i) {
    double number = 0;
    ASSERT_TRUE(wanted >> number);
    EXPECT_NEAR(ours[i], number, 2e-7) << "bin " << i / frames << ", frame " << i % frames;
  }
}

TEST(Speech, ReadsWaveFiles) {
  const std::string all = wave_of(), samples = "3460";
  EXPECT_EQ(read(all), samples);
  const std::size_t data = all.find("data");
  EXPECT_EQ(read(wave_of("\xff\xff\xff\xff", data + 4)), samples); // a stream, whose length was unknown
  EXPECT_EQ(read(all.substr(0, data + 8 + 7)), "3");               // truncated within a sample
  const std::string extended = all.substr(0, 12) + "fmt " + std::string("\x1a\0\0\0\xfe\xff", 6) + all.substr(22, 14) +
                               std::string(8, '\0') + std::string("\1\0", 2) + all.substr(36);
  EXPECT_EQ(read(extended), samples);
}

TEST(Speech, SaysWhatIsWrongWithAWaveFile) {
  const std::string wanted =
      "speech.wav\": unsupported format; expected PCM of 1 channel, 16000 samples a second, 16 bits, got ";
  auto expect = [](const std::string &bytes, const std::string &words) {
    const std::string got = read(bytes);
    EXPECT_NE(got.find(words), got.npos) << got << "\nwanted: " << words;
  };
  expect(wave_of(std::string("\2", 1), 22), wanted + "format 1 of 2 channels, 16000 samples a second, 16 bits");
  expect(wave_of(std::string("\x44\xac", 2), 24), wanted + "format 1 of 1 channels, 44100 samples a second, 16 bits");
  expect(wave_of(std::string("\3", 1), 20), wanted + "format 3 of 1 channels, 16000 samples a second, 16 bits");
  expect(wave_of(std::string("\x18", 1), 34), wanted + "format 1 of 1 channels, 16000 samples a second, 24 bits");
  expect(wave_of("fmx", 12), wanted + "no format");
  expect(wave_of("RIFX"), "speech.wav\" is no WAV file");
  expect(wave_of("WAVX", 8), "speech.wav\" is no WAV file");
  expect("", "speech.wav\" is no WAV file");
  expect("RIFF", "speech.wav\" is no WAV file");
  expect(wave_of().substr(0, 36), "speech.wav\" has no samples");
}

} // namespace

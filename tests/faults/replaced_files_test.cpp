// SPDX-License-Identifier: Apache-2.0
// The path to which a file is saved: symbolic links are followed, the mode of the replaced file is kept, and only
// regular files are replaced.
#include "checkpoints.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using namespace kiln_test;

unsigned modeOf(const std::string &path) {
  struct stat facts;
  return lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777 : ~0u;
}

class ReplacedFiles : public testing::Test {
protected:
  ReplacedFiles() { EXPECT_EQ(kiln_bind_weights(Model, Files.at("w.safetensors").c_str(), &Error), KILN_OK); }
  ~ReplacedFiles() override { kiln_destroy(Model); }

  /// Creates "saved" with `make` for each of the saving functions, saves, and checks with `look`.
  void forEach(const std::function<void()> &make, const std::function<void(kiln_status_t)> &look) {
    for (const Operation &operation : Files.operations()) {
      if (!operation.IsWriting)
        continue;
      SCOPED_TRACE(operation.Name);
      for (const char *name : {"saved", "target", "second"})
        fs::remove_all(Files.at(name));
      fs::remove_all(Files.at("folder"));
      make();
      look(operation.Run(Model, &Error));
      for (const fs::directory_entry &entry : fs::directory_iterator(Files.at("")))
        EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry << " is left";
    }
  }
  /// Expects that a regular file was written.
  void expectWritten(const std::string &path) const {
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path))) << path;
    EXPECT_GT(fs::file_size(path), 64u) << path;
  }
  void expectRefused(kiln_status_t status) const {
    EXPECT_EQ(status, KILN_FILE_ERROR);
    EXPECT_NE(std::string(Error.message).find("cannot write weight file \""), std::string::npos) << Error.message;
    EXPECT_NE(std::string(Error.message).find("\": not a regular file"), std::string::npos) << Error.message;
  }

  Checkpoints Files;
  kiln_error_t Error = {};
  kiln_model_t *Model = Checkpoints::makeZero();
};

TEST_F(ReplacedFiles, SymbolicLinksAreFollowed) {
  forEach(
      [&] {
        Files.write("target", "old");
        fs::create_symlink(Files.at("target"), Files.at("saved"));
      },
      [&](kiln_status_t status) {
        EXPECT_EQ(status, KILN_OK) << Error.message;
        EXPECT_TRUE(fs::is_symlink(Files.at("saved")));
        expectWritten(Files.at("target"));
      });
}

// A chain through another folder with relative links; the file at their end is written.
TEST_F(ReplacedFiles, RelativeLinksBeginWhereTheyAre) {
  forEach(
      [&] {
        fs::create_directory(Files.at("folder"));
        Files.write("folder/target", "old");
        fs::create_symlink("target", Files.at("folder/second"));
        fs::create_symlink("folder/second", Files.at("saved"));
      },
      [&](kiln_status_t status) {
        EXPECT_EQ(status, KILN_OK) << Error.message;
        EXPECT_TRUE(fs::is_symlink(Files.at("saved")) && fs::is_symlink(Files.at("folder/second")));
        expectWritten(Files.at("folder/target"));
        EXPECT_EQ(std::distance(fs::directory_iterator(Files.at("folder")), fs::directory_iterator()), 2);
      });
}

TEST_F(ReplacedFiles, ALinkToNothingMakesItsTarget) {
  forEach([&] { fs::create_symlink("target", Files.at("saved")); },
          [&](kiln_status_t status) {
            EXPECT_EQ(status, KILN_OK) << Error.message;
            EXPECT_TRUE(fs::is_symlink(Files.at("saved")));
            expectWritten(Files.at("target"));
          });
}

TEST_F(ReplacedFiles, LinksInACircleAreRefused) {
  forEach(
      [&] {
        fs::create_symlink("second", Files.at("saved"));
        fs::create_symlink("saved", Files.at("second"));
      },
      [&](kiln_status_t status) {
        EXPECT_EQ(status, KILN_FILE_ERROR);
        EXPECT_NE(std::string(Error.message).find("Too many levels of symbolic links"), std::string::npos)
            << Error.message;
        EXPECT_TRUE(fs::is_symlink(Files.at("saved")) && fs::is_symlink(Files.at("second")));
      });
}

TEST_F(ReplacedFiles, TheModeIsKept) {
  for (const unsigned mode : {0600u, 0640u, 0444u, 0755u, 0200u})
    for (const bool isLinked : {false, true}) {
      const std::string file = Files.at(isLinked ? "target" : "saved");
      forEach(
          [&] {
            Files.write(isLinked ? "target" : "saved", "old");
            ASSERT_EQ(chmod(file.c_str(), mode), 0);
            if (isLinked)
              fs::create_symlink("target", Files.at("saved"));
          },
          [&](kiln_status_t status) {
            EXPECT_EQ(status, KILN_OK) << Error.message;
            EXPECT_EQ(modeOf(file), mode);
            expectWritten(file);
          });
    }
}

TEST_F(ReplacedFiles, ANewFileHasTheModeOfTheUmask) {
  const mode_t before = umask(027);
  forEach([] {},
          [&](kiln_status_t status) {
            EXPECT_EQ(status, KILN_OK) << Error.message;
            EXPECT_EQ(modeOf(Files.at("saved")), 0640u);
          });
  umask(before);
}

// Owner and group are kept if the process has the permission; otherwise the group gets no access to a file that
// belonged to another one.
TEST_F(ReplacedFiles, OwnerAndGroupAreKept) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  forEach(
      [&] {
        Files.write("saved", "old");
        ASSERT_EQ(chown(Files.at("saved").c_str(), 12345, 23456), 0);
        ASSERT_EQ(chmod(Files.at("saved").c_str(), 0640), 0);
      },
      [&](kiln_status_t status) {
        struct stat facts;
        EXPECT_EQ(status, KILN_OK) << Error.message;
        ASSERT_EQ(stat(Files.at("saved").c_str(), &facts), 0);
        EXPECT_EQ(facts.st_uid, 12345u);
        EXPECT_EQ(facts.st_gid, 23456u);
        EXPECT_EQ(modeOf(Files.at("saved")), 0640u);
      });
}

TEST_F(ReplacedFiles, WhereTheGroupCannotBeKeptItHasNoRights) {
  constexpr unsigned user = 65534, foreign = 23456;
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chmod(Files.at("").c_str(), 0777), 0);
  forEach(
      [&] {
        Files.write("saved", "old");
        ASSERT_EQ(chown(Files.at("saved").c_str(), user, foreign), 0);
        ASSERT_EQ(chmod(Files.at("saved").c_str(), 0664), 0);
        ASSERT_EQ(setgroups(0, nullptr), 0);
        ASSERT_EQ(setegid(user), 0);
        ASSERT_EQ(seteuid(user), 0);
      },
      [&](kiln_status_t status) {
        struct stat facts;
        EXPECT_EQ(seteuid(0), 0);
        EXPECT_EQ(setegid(0), 0);
        EXPECT_EQ(status, KILN_OK) << Error.message;
        ASSERT_EQ(stat(Files.at("saved").c_str(), &facts), 0);
        EXPECT_EQ(facts.st_uid, user);
        EXPECT_EQ(facts.st_gid, user);
        EXPECT_EQ(modeOf(Files.at("saved")), 0604u);
      });
}

TEST_F(ReplacedFiles, PipesAreRefused) {
  forEach([&] { ASSERT_EQ(mkfifo(Files.at("saved").c_str(), 0600), 0); },
          [&](kiln_status_t status) {
            expectRefused(status);
            EXPECT_TRUE(fs::is_fifo(Files.at("saved")));
            fs::remove(Files.at("saved")); // opening it would block
          });
}

// The link of a pipe that has no name in the file system, as the standard output often is, cannot be followed by its
// text, "pipe:[12345]".
TEST_F(ReplacedFiles, LinksToUnnamedPipesAreRefused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  forEach([&] { fs::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), Files.at("saved")); },
          [&](kiln_status_t status) {
            expectRefused(status);
            EXPECT_TRUE(fs::is_symlink(Files.at("saved")));
          });
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ReplacedFiles, FoldersAreRefused) {
  forEach([&] { fs::create_directory(Files.at("saved")); },
          [&](kiln_status_t status) {
            expectRefused(status);
            EXPECT_TRUE(fs::is_directory(Files.at("saved")));
            fs::remove(Files.at("saved"));
          });
}

TEST_F(ReplacedFiles, SocketsAreRefused) {
  forEach(
      [&] {
        const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        Files.at("saved").copy(address.sun_path, sizeof address.sun_path - 1);
        ASSERT_EQ(bind(descriptor, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
        close(descriptor);
      },
      [&](kiln_status_t status) {
        expectRefused(status);
        EXPECT_TRUE(fs::is_socket(Files.at("saved")));
        fs::remove(Files.at("saved"));
      });
}

// Through a link, so that an error which replaces the link does no harm to the machine.
TEST_F(ReplacedFiles, DevicesAreRefused) {
  forEach([&] { fs::create_symlink("/dev/null", Files.at("saved")); },
          [&](kiln_status_t status) {
            expectRefused(status);
            EXPECT_TRUE(fs::is_symlink(Files.at("saved")));
            EXPECT_TRUE(fs::is_character_file("/dev/null"));
          });
}

} // namespace

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Adds a folder to a copy of models/ and builds `kiln new` with it: no other file has to change for its models to be
# read, for its cases to become projects, and for its configurations to be refused: new_family.sh SOURCE FAMILY COMPILER
set -eu
source=$1 family=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/examples" "$work/tools"
cp -r "$source/cmake" "$source/models" "$work"
cp -r "$source/examples/support" "$work/examples"
cp -r "$source/tools/new" "$work/tools"
cp -r "$family" "$work/models"
cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(families LANGUAGES CXX)
set(KILN_UNITY_BUILD ON)
include(cmake/KilnTargets.cmake)
find_package(fmt REQUIRED)
find_package(GTest REQUIRED)
add_subdirectory(tools/new)
add_subdirectory(models)
add_executable(family_tests "$source/tests/new/new_test.cpp")
target_compile_definitions(family_tests PRIVATE KILN_SOURCE="$work")
target_link_libraries(family_tests PRIVATE kiln_new GTest::gtest_main)
END
cmake -G Ninja -S "$work" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
name=$(basename "$family")
grep -qx "KILN_MODEL_FAMILY($name)" "$work/build/models/families.inc" || { echo "CMake did not find $name"; exit 1; }
"$work/build/family_tests" --gtest_filter=New.FindsTheFilesOfAFamily:New.WritesAllThatAProjectNeeds:New.SaysWhatItCannotBuild

# SPDX-License-Identifier: Apache-2.0
#
#   kiln_add_library(NAME MODEL spec.cpp | GENERATOR target
#                    [LIBRARY name]                      prefix of its symbols and files; default NAME
#                    [TARGETS x86-64-v4 x86-64-v3 ...]   instruction sets in the archive, best first; default: those of
#                                                       the variable KILN_TARGETS, or the compiler's
#                    [TUNING file | NO_TUNING]           measurements that choose the schedules, from `kiln tune`;
#                                                       default: NAME.tuning next to the spec, if it exists
#                    [REQUIRE_TUNED]                     fail the build unless each kernel was measured
#                    [MACHINE name] [THREADS n]          which of the measurements are used
#                    [TF32]                              GPUs may round f32 operands to tf32, for tensor cores
#                    [BATCH_INVARIANT]                   batch-invariant: the same bits for a row in every call
#                    [RANKS n]                           tensor parallelism: n processes, each with some of the weights
#                    [STAGES n]                          pipeline parallelism: n processes, each with some layers;
#                                                       if n does not divide them, those before the last have one more
#                    [REPLICAS n]                        data parallelism: n models train together on different inputs
#                    [REDUCTION_PARTS n]                 with it the same bits for each number of ranks that divides n
#                    [SEQUENCE_PARALLEL]                 ranks also divide the rows of norms and residuals
#                    [SHARD_OPTIMIZER]                   ZeRO-1: replicas shard optimiser states and updates
#                    [WEIGHTS type] [EXCEPT pattern=type ...]  storage format of weight matrices: f32, f16, bf16, int8
#                    [EMBED file]                        a checkpoint to embed in the archive: NAME_bind_embedded
#                    [RENAME from=to ...] [RENAMES file]  with EMBED: names of the checkpoint that differ from the
#                                                        model's; "module.*=*" removes a prefix, "from=" ignores one
#                    [ACTIVATIONS int8]                  activations of int8 weights are quantised to int8, too
#                    [SELFTEST]                          NAME_selftest detects a miscompiled or damaged library
#                    [SHARED]                            a shared object that exports only the declarations of NAME.h
#                    [LINKER command ...]                with SHARED: a C compiler that links for the targets; default:
#                                                        the project's, or Debian's for another architecture
#                    [BINDINGS python rust]              NAME.py and NAME.rs, bindings for these languages
#                    [MAX_TEXT_BYTES n] [MAX_ARENA_BYTES n]  budgets: exceeding one fails the build
#                    [INCLUDES dir ...])                  include folders of the spec
#
# A mistake in the spec is reported in one line, "spec.cpp:14: error: block.down: linear: wrong input width; ...",
# without the compiler's own output: -DKILN_VERBOSE=ON, or VERBOSE=1 in the environment, shows that, too.
#
# Builds the spec's generator, NAME_generator, runs it, and defines the library target NAME: link it, and include NAME.h
# or NAME.hpp. GENERATOR uses an existing generator, for the same model in another form. The target NAME_tune measures
# on this machine and writes the tuning file, NAME.tuning next to the spec unless TUNING names another; nothing else
# measures.
function(kiln_add_library name)
  cmake_parse_arguments(arg "NO_TUNING;REQUIRE_TUNED;TF32;BATCH_INVARIANT;SEQUENCE_PARALLEL;SHARD_OPTIMIZER;SELFTEST;SHARED" "MODEL;GENERATOR;LIBRARY;TUNING;MACHINE;THREADS;RANKS;STAGES;REPLICAS;REDUCTION_PARTS;WEIGHTS;EMBED;ACTIVATIONS;MAX_TEXT_BYTES;MAX_ARENA_BYTES;RENAMES"
    "TARGETS;INCLUDES;EXCEPT;LINKER;BINDINGS;RENAME" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kiln_add_library(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_MODEL)
    set(generator ${name}_generator)
    kiln_add_generator(${generator} "${arg_MODEL}" INCLUDES ${arg_INCLUDES})
  elseif(arg_GENERATOR)
    set(generator ${arg_GENERATOR})
  else()
    message(FATAL_ERROR "kiln_add_library(${name}): no model; expected MODEL and a spec, or GENERATOR and a target")
  endif()

  set(library ${name})
  if(arg_LIBRARY)
    set(library ${arg_LIBRARY})
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}_kiln")
  set(options "")
  set(measuring "")
  if(NOT arg_TARGETS)
    set(arg_TARGETS ${KILN_TARGETS})
  endif()
  if(arg_TARGETS)
    list(JOIN arg_TARGETS "," targets)
    list(APPEND options --target ${targets})
    list(APPEND measuring --target ${targets})
  endif()
  if(arg_MAX_TEXT_BYTES)
    list(APPEND options --max-text-bytes ${arg_MAX_TEXT_BYTES})
  endif()
  if(arg_MAX_ARENA_BYTES)
    list(APPEND options --max-arena-bytes ${arg_MAX_ARENA_BYTES})
  endif()
  if(arg_TF32)
    list(APPEND options --tf32)
    list(APPEND measuring --tf32)
  endif()
  if(arg_BATCH_INVARIANT)
    list(APPEND options --batch-invariant)
    list(APPEND measuring --batch-invariant)
  endif()
  if(arg_RANKS)
    list(APPEND options --ranks ${arg_RANKS})
    list(APPEND measuring --ranks ${arg_RANKS})
  endif()
  if(arg_STAGES)
    list(APPEND options --stages ${arg_STAGES})
    list(APPEND measuring --stages ${arg_STAGES})
  endif()
  if(arg_REPLICAS)
    list(APPEND options --replicas ${arg_REPLICAS})
    list(APPEND measuring --replicas ${arg_REPLICAS})
  endif()
  if(arg_REDUCTION_PARTS)
    list(APPEND options --reduction-parts ${arg_REDUCTION_PARTS})
    list(APPEND measuring --reduction-parts ${arg_REDUCTION_PARTS})
  endif()
  if(arg_SEQUENCE_PARALLEL)
    list(APPEND options --sequence-parallel)
    list(APPEND measuring --sequence-parallel)
  endif()
  if(arg_SHARD_OPTIMIZER)
    list(APPEND options --shard-optimizer)
    list(APPEND measuring --shard-optimizer)
  endif()
  if(arg_EXCEPT AND NOT arg_WEIGHTS)
    message(FATAL_ERROR "kiln_add_library(${name}): EXCEPT without WEIGHTS; expected WEIGHTS and a type")
  endif()
  if(arg_WEIGHTS)
    set(weights ${arg_WEIGHTS})
    if(arg_EXCEPT)
      list(APPEND weights except ${arg_EXCEPT})
    endif()
    list(JOIN weights " " weights)
    list(APPEND options --weights "${weights}")
    list(APPEND measuring --weights "${weights}")
  endif()
  if(arg_ACTIVATIONS)
    list(APPEND options --activations ${arg_ACTIVATIONS})
    list(APPEND measuring --activations ${arg_ACTIVATIONS})
  endif()
  set(depends "")
  if(arg_SELFTEST)
    list(APPEND options --selftest)
  endif()
  if(arg_EMBED)
    get_filename_component(checkpoint "${arg_EMBED}" ABSOLUTE)
    list(APPEND options --embed "${checkpoint}")
    list(APPEND depends "${checkpoint}")
    foreach(rename ${arg_RENAME})
      list(APPEND options --rename "${rename}")
    endforeach()
    if(arg_RENAMES)
      get_filename_component(renames "${arg_RENAMES}" ABSOLUTE)
      list(APPEND options --renames "${renames}")
      list(APPEND depends "${renames}")
    endif()
  elseif(arg_RENAME OR arg_RENAMES)
    message(FATAL_ERROR "kiln_add_library(${name}): renames without EMBED; expected EMBED and a checkpoint")
  endif()
  # The folder in which the generator looks for NAME.tuning, and to which it writes it.
  set(spec_folder "")
  if(TARGET ${generator})
    get_target_property(spec_folder ${generator} KILN_SPEC_FOLDER)
  endif()
  if(NOT spec_folder)
    set(spec_folder "${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
  set(advised "")
  set(in_spec_folder ${CMAKE_COMMAND} -E env "KILN_SPEC_FOLDER=${spec_folder}")
  if(arg_TUNING AND arg_NO_TUNING)
    message(FATAL_ERROR "kiln_add_library(${name}): NO_TUNING excludes TUNING")
  endif()
  if(arg_TUNING)
    get_filename_component(tuning "${arg_TUNING}" ABSOLUTE)
    list(APPEND options --tuning "${tuning}")
    # The generator must be built before it can write the file, so a file that does not exist is not a missing
    # dependency: the library's own command says what to do. Later builds check for it.
    if(EXISTS "${tuning}")
      list(APPEND depends "${tuning}")
    else()
      file(GLOB appeared CONFIGURE_DEPENDS "${tuning}")
    endif()
  elseif(arg_NO_TUNING)
    list(APPEND options --no-tuning)
  else()
    # The command that `compile` recommends for measuring schedules, as it must be typed.
    set(advised "KILN_TUNE_COMMAND=KILN_SPEC_FOLDER='${spec_folder}' '$<TARGET_FILE:${generator}>' tune")
    # Named after the library or after the model, whose name only the generator knows.
    file(GLOB appeared CONFIGURE_DEPENDS "${spec_folder}/*.tuning")
    list(APPEND depends ${appeared})
  endif()
  if(arg_REQUIRE_TUNED)
    if(arg_NO_TUNING)
      message(FATAL_ERROR "kiln_add_library(${name}): REQUIRE_TUNED excludes NO_TUNING")
    endif()
    list(APPEND options --require-tuned)
  endif()
  if(arg_MACHINE)
    list(APPEND options --machine ${arg_MACHINE})
  endif()
  if(arg_THREADS)
    list(APPEND options --threads ${arg_THREADS})
    list(APPEND measuring --threads ${arg_THREADS})
  endif()
  if(arg_TUNING)
    list(APPEND measuring --tuning "${tuning}")
  endif()
  if(NOT arg_NO_TUNING)
    add_custom_target(${name}_tune COMMAND ${in_spec_folder} $<TARGET_FILE:${generator}> tune ${measuring}
      COMMENT "Measuring schedules of the model ${name}" USES_TERMINAL VERBATIM)
  endif()
  set(file "lib${library}.a")
  set(others "")
  if(arg_SHARED)
    kiln_shared_options(file linker "${library}" "${arg_TARGETS}" "${arg_LINKER}")
    list(APPEND options --shared ${linker})
  elseif(arg_LINKER)
    message(FATAL_ERROR "kiln_add_library(${name}): LINKER without SHARED; expected SHARED")
  endif()
  if(file MATCHES "dll$")
    list(APPEND others "${folder}/lib${library}.dll.a") # the import library, which programs link
  endif()
  if("python" IN_LIST arg_BINDINGS)
    if(NOT arg_SHARED)
      message(FATAL_ERROR "kiln_add_library(${name}): BINDINGS python without SHARED; expected SHARED")
    endif()
    list(APPEND others "${folder}/${library}.py")
  endif()
  if("rust" IN_LIST arg_BINDINGS)
    list(APPEND others "${folder}/${library}.rs")
  endif()
  if(arg_BINDINGS)
    list(JOIN arg_BINDINGS "," bindings)
    list(APPEND options --bindings ${bindings})
  endif()
  set(files "${folder}/${file}" ${others} "${folder}/${library}.h" "${folder}/${library}.hpp"
    "${folder}/${library}.manifest.json" "${folder}/${library}.pc" "${folder}/${library}.LICENSE.txt")
  add_custom_command(OUTPUT ${files}
    COMMAND ${CMAKE_COMMAND} -E make_directory "${folder}"
    COMMAND ${in_spec_folder} ${advised} $<TARGET_FILE:${generator}> compile --name ${library} --output-dir "${folder}" ${options}
    DEPENDS ${generator} $<TARGET_FILE:kiln::compiler> ${depends}
    COMMENT "Compiling the model ${name}"
    VERBATIM)
  add_custom_target(${name}_library DEPENDS ${files})

  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_library)
  target_include_directories(${name} INTERFACE "${folder}")
  if(NOT arg_SHARED)
    target_link_libraries(${name} INTERFACE "${folder}/${file}" m)
  elseif(file MATCHES "dll$")
    target_link_libraries(${name} INTERFACE "${folder}/lib${library}.dll.a")
  else()
    target_link_libraries(${name} INTERFACE "${folder}/${file}")
  endif()
  set_target_properties(${name} PROPERTIES KILN_ARCHIVE "${folder}/${file}" KILN_FOLDER "${folder}")
endfunction()

#   kiln_add_generator(NAME spec.cpp [INCLUDES dir ...])
#
# The program that compiles a spec and can write several libraries: kiln_add_library(... GENERATOR NAME).
function(kiln_add_generator generator spec)
  cmake_parse_arguments(arg "" "" "INCLUDES" ${ARGN})
  add_executable(${generator} ${spec})
  target_compile_features(${generator} PRIVATE cxx_std_20)
  target_include_directories(${generator} PRIVATE ${arg_INCLUDES})
  # It runs only once, and its model was traced at compile time.
  target_compile_options(${generator} PRIVATE -O0)
  target_link_libraries(${generator} PRIVATE kiln::compiler)
  get_filename_component(spec "${spec}" ABSOLUTE)
  get_filename_component(spec_folder "${spec}" DIRECTORY)
  set_target_properties(${generator} PROPERTIES KILN_SPEC_FOLDER "${spec_folder}")
  # Reports a mistake in the spec in one line, before the compiler's output.
  get_property(diagnose GLOBAL PROPERTY KILN_DIAGNOSE)
  if(KILN_VERBOSE)
    list(APPEND diagnose --verbose)
  endif()
  if(diagnose)
    set_property(TARGET ${generator} PROPERTY CXX_COMPILER_LAUNCHER ${diagnose} "${spec}" -- ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  if(TARGET kiln_diagnose) # of this build, not of an installed Kiln
    add_dependencies(${generator} kiln_diagnose)
  endif()
  if(TARGET kiln_spec_pch) # Kiln's own build
    kiln_share_precompiled(kiln_spec_pch ${generator})
  endif()
endfunction()

# Sets the file name of a shared object for the targets, and --linker with the project's C compiler if that links for
# them.
function(kiln_shared_options file linker library targets given)
  set(name "lib${library}.so")
  set(architecture "${CMAKE_SYSTEM_PROCESSOR}")
  if(targets MATCHES "windows")
    set(name "${library}.dll")
    set(architecture "")
  elseif(targets MATCHES "android")
    set(architecture "")
  elseif(targets MATCHES "macos|-ios")
    set(name "lib${library}.dylib")
    set(architecture "")
  elseif(targets MATCHES "^(aarch64|riscv64)" AND NOT architecture STREQUAL CMAKE_MATCH_1)
    set(architecture "")
  elseif(targets MATCHES "^x86-64" AND NOT architecture STREQUAL "x86_64")
    set(architecture "")
  endif()
  set(words ${given})
  if(NOT words AND (architecture OR CMAKE_CROSSCOMPILING))
    foreach(language C CXX)
      if(NOT words AND CMAKE_${language}_COMPILER)
        set(words "${CMAKE_${language}_COMPILER}")
        if(CMAKE_${language}_COMPILER_TARGET)
          list(APPEND words "--target=${CMAKE_${language}_COMPILER_TARGET}")
        endif()
      endif()
    endforeach()
    if(CMAKE_SYSROOT)
      list(APPEND words "--sysroot=${CMAKE_SYSROOT}")
    endif()
  endif()
  set(options "")
  if(words)
    list(JOIN words " " words)
    set(options --linker "${words}")
  endif()
  set(${file} "${name}" PARENT_SCOPE)
  set(${linker} "${options}" PARENT_SCOPE)
endfunction()

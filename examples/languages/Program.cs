// SPDX-License-Identifier: Apache-2.0
// Program.exe WEIGHTS: calls the library by P/Invoke (.NET or Mono).
using System;
using System.Runtime.InteropServices;
using System.Text;

static class Scorer {
  const string Library = "scorer"; // libscorer.so, scorer.dll

  // kiln_call_t. Members that are not set are null.
  [StructLayout(LayoutKind.Sequential)]
  public struct Call {
    public IntPtr Arena;
    public UIntPtr ArenaBytes;
    public IntPtr Executor, Error, Stream, Memory, Trace, Communicator, Replicas, Stages, Reserved;
  }

  [DllImport(Library)] public static extern uint scorer_abi_version();
  [DllImport(Library)] public static extern UIntPtr scorer_forward_arena_bytes(uint workers);
  [DllImport(Library)] public static extern int scorer_create(IntPtr allocator, out IntPtr model, IntPtr error);
  [DllImport(Library)] public static extern int scorer_bind_weights(IntPtr model, byte[] path, IntPtr error);
  [DllImport(Library)]
  public static extern int scorer_allocate_memory(IntPtr model, UIntPtr bytes, out IntPtr memory, IntPtr error);
  [DllImport(Library)] public static extern void scorer_release_memory(IntPtr model, IntPtr memory);
  [DllImport(Library)] public static extern void scorer_destroy(IntPtr model);
  [DllImport(Library)]
  public static extern int scorer_forward(IntPtr model, ref Call call, long rows, float[] x, [Out] float[] y);
}

static class Program {
  static readonly IntPtr error = Marshal.AllocHGlobal(256); // kiln_error_t: a status and 252 bytes of text

  static void Check(int status) {
    if (status != 0)
      throw new InvalidOperationException(Marshal.PtrToStringAnsi(error + 4));
  }

  static byte[] Path(string path) { return Encoding.UTF8.GetBytes(path + "\0"); }

  static void Main(string[] arguments) {
    IntPtr model;
    Check(Scorer.scorer_create(IntPtr.Zero, out model, error));
    bool isRefused = Scorer.scorer_bind_weights(model, Path("nowhere.safetensors"), error) != 0;
    Console.WriteLine("refused: " + isRefused.ToString().ToLower());
    Check(Scorer.scorer_bind_weights(model, Path(arguments[0]), error));
    var call = new Scorer.Call { ArenaBytes = Scorer.scorer_forward_arena_bytes(1), Error = error };
    Check(Scorer.scorer_allocate_memory(model, call.ArenaBytes, out call.Arena, error));
    var y = new float[6];
    Check(Scorer.scorer_forward(model, ref call, 2, new float[] {1, 2, 3, 4, 1, 0, 0, 0}, y));
    Console.WriteLine("scores: " + string.Join(" ", y));
    Scorer.scorer_release_memory(model, call.Arena);
    Scorer.scorer_destroy(model);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Main WEIGHTS: calls the library by JNA (Debian's libjna-java); jna.library.path names the directory of libscorer.so.
import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;

public class Main {
  public interface Scorer extends Library {
    Scorer library = Native.load("scorer", Scorer.class);

    long scorer_forward_arena_bytes(int workers);
    int scorer_create(Pointer allocator, PointerByReference model, Pointer error);
    int scorer_bind_weights(Pointer model, String path, Pointer error);
    int scorer_allocate_memory(Pointer model, long bytes, PointerByReference memory, Pointer error);
    void scorer_release_memory(Pointer model, Pointer memory);
    int scorer_forward(Pointer model, Pointer call, long rows, float[] x, float[] y);
    void scorer_destroy(Pointer model);
  }

  static final Memory error = new Memory(256); // kiln_error_t: a status and 252 bytes of text

  static void check(int status) {
    if (status != 0)
      throw new IllegalStateException(error.getString(4));
  }

  public static void main(String[] arguments) {
    PointerByReference created = new PointerByReference(), arena = new PointerByReference();
    check(Scorer.library.scorer_create(null, created, error));
    Pointer model = created.getValue();
    System.out.println("refused: " + (Scorer.library.scorer_bind_weights(model, "nowhere.safetensors", error) != 0));
    check(Scorer.library.scorer_bind_weights(model, arguments[0], error));
    long bytes = Scorer.library.scorer_forward_arena_bytes(1);
    check(Scorer.library.scorer_allocate_memory(model, bytes, arena, error));
    Memory call = new Memory(11 * 8); // kiln_call_t: arena, its bytes, executor, error; other members are null
    call.clear();
    call.setPointer(0, arena.getValue());
    call.setLong(8, bytes);
    call.setPointer(24, error);
    float[] y = new float[6];
    check(Scorer.library.scorer_forward(model, call, 2, new float[] {1, 2, 3, 4, 1, 0, 0, 0}, y));
    StringBuilder scores = new StringBuilder("scores:");
    for (float score : y)
      scores.append(String.format(" %.0f", score));
    System.out.println(scores);
    Scorer.library.scorer_release_memory(model, arena.getValue());
    Scorer.library.scorer_destroy(model);
  }
}

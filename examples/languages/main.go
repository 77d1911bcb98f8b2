// SPDX-License-Identifier: Apache-2.0
// main WEIGHTS: calls the library by cgo, which reads scorer.h.
package main

/*
#cgo LDFLAGS: -lscorer
#include <stdlib.h>
#include "scorer.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

type session struct {
	model *C.scorer_t
	call  *C.kiln_call_t // in C memory, since it has pointers
}

func check(status C.kiln_status_t, message *C.kiln_error_t) error {
	if status == C.KILN_OK {
		return nil
	}
	return errors.New(C.GoString(&message.message[0]))
}

func open(weights string) (*session, error) {
	message := (*C.kiln_error_t)(C.calloc(1, C.sizeof_kiln_error_t))
	s := &session{call: (*C.kiln_call_t)(C.calloc(1, C.sizeof_kiln_call_t))}
	path := C.CString(weights)
	defer C.free(unsafe.Pointer(path))
	if err := check(C.scorer_create(nil, &s.model, message), message); err != nil {
		return nil, err
	}
	if err := check(C.scorer_bind_weights(s.model, path, message), message); err != nil {
		return nil, err
	}
	bytes := C.scorer_forward_arena_bytes(1)
	s.call.arena_bytes, s.call.error = bytes, message
	return s, check(C.scorer_allocate_memory(s.model, bytes, &s.call.arena, message), message)
}

func (s *session) forward(rows int, x, y []float32) error {
	if len(x) != 4*rows || len(y) != 3*rows {
		return errors.New("x, y: wrong lengths; expected 4 and 3 numbers a row")
	}
	status := C.scorer_forward(s.model, s.call, C.int64_t(rows), (*C.float)(&x[0]), (*C.float)(&y[0]))
	return check(status, s.call.error)
}

func main() {
	_, refused := open("nowhere.safetensors")
	fmt.Println("refused:", refused != nil)
	s, err := open(os.Args[1])
	y := make([]float32, 6)
	if err == nil {
		err = s.forward(2, []float32{1, 2, 3, 4, 1, 0, 0, 0}, y)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("scores: %.0f %.0f %.0f %.0f %.0f %.0f\n", y[0], y[1], y[2], y[3], y[4], y[5])
}

package verify_test

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/braggdev/bragg/internal/fio/verify"
)

// stateOfFio is what fio 3.33 left after 64 random writes of a job "a" at queue depth 1, the last at 0x2e000.
const stateOfFio = "0300000000000000a8000000000000003d5ca6e0000000000100000000000000010000000100000040000000000000000000000000000000" +
	"00000000000000003dadb9ccf827a305c8677e13000000000000000000000000000000000000000000000000000000000000000000000000" +
	"6100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
	"0000000000000000000000000000000000e0020000000000"

func stateBytes(t testing.TB) []byte {
	t.Helper()
	data, err := hex.DecodeString(stateOfFio)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestStateOfFio(t *testing.T) {
	data := stateBytes(t)
	s, err := verify.ReadState(data)
	if err != nil {
		t.Fatal(err)
	}
	if s.Writes != 64 || s.Depth != 1 || s.Files != 1 || s.Name != "a" || s.Ours() || !reflect.DeepEqual(s.Completed, []verify.FilePlace{{Offset: 0x2e000}}) {
		t.Errorf("%+v", s)
	}
	if !bytes.Equal(s.Bytes(), data) {
		t.Errorf("written again it is\n%x, and it was\n%x", s.Bytes(), data)
	}
	for at := range data {
		damaged := bytes.Clone(data)
		damaged[at] ^= 4
		if _, err := verify.ReadState(damaged); err == nil {
			t.Errorf("a changed byte %d is not detected", at)
		}
		if _, err := verify.ReadState(data[:at]); err == nil {
			t.Errorf("a state cut to %d bytes is accepted", at)
		}
	}
}

func TestOwnState(t *testing.T) {
	s := &verify.State{Depth: 3, Files: 2, Writes: 1 << 40, Index: 1, Name: "job", Completed: []verify.FilePlace{{File: 1, Offset: 4096}, {Offset: 1 << 50}}}
	s.MarkOurs()
	back, err := verify.ReadState(s.Bytes())
	if err != nil || !reflect.DeepEqual(back, s) || !back.Ours() {
		t.Errorf("%+v, %v", back, err)
	}
	s.Name = string(bytes.Repeat([]byte("long"), 40))
	if back, err := verify.ReadState(s.Bytes()); err != nil || len(back.Name) != 63 {
		t.Errorf("%+v, %v", back, err)
	}
}

// FuzzState finds bytes that are read and come out otherwise when they are written again, or that take what they should not.
func FuzzState(f *testing.F) {
	f.Add(stateBytes(f))
	f.Add((&verify.State{Name: "x"}).Bytes())
	f.Add([]byte("\x03\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := verify.ReadState(data)
		if err != nil {
			return
		}
		again, err := verify.ReadState(s.Bytes())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%+v becomes %+v, %v", s, again, err)
		}
	})
}

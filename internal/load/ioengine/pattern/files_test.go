package pattern

import (
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// The orders are those that fio 3.33 writes down for four files of eight blocks, or three.
func TestFileOrders(t *testing.T) {
	for _, c := range []struct {
		service fiojob.FileService
		open    int
		want    string
	}{
		{fiojob.FileService{Count: 4}, 0, "AAAABBBBCCCCDDDDAAAABBBBCCCCDDDD"},
		{fiojob.FileService{}, 2, "ABABABABABABABABCDCDCDCDCDCDCDCD"},
		{fiojob.FileService{Count: 4}, 2, "AAAABBBBAAAABBBBCCCCDDDDCCCCDDDD"},
		{fiojob.FileService{Kind: "sequential"}, 2, "AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDD"},
		{fiojob.FileService{Kind: "sequential"}, 0, "AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDD"},
	} {
		if got := fileOrderOf(c.service, c.open, 7); got != c.want {
			t.Errorf("%+v with %d open: %s, want %s", c.service, c.open, got, c.want)
		}
	}
	for _, kind := range []string{"random", "zipf", "pareto", "normal"} {
		service := fiojob.FileService{Kind: kind, Parameter: 0.4}
		got := fileOrderOf(service, 0, 7)
		if len(got) != 32 || got != fileOrderOf(service, 0, 7) || got == fileOrderOf(service, 0, 8) {
			t.Errorf("%s: %s is not all of the work in an order that the key decides", kind, got)
		}
	}
	for at, first := range fileOrderOf(fiojob.FileService{Kind: "random"}, 2, 3) {
		if at < 8 && first != 'A' && first != 'B' {
			t.Errorf("operation %d of two open files goes to %c", at, first)
		}
	}
	four := fileOrderOf(fiojob.FileService{Kind: "random", Count: 4}, 0, 5)
	for i := 0; i < len(four); i += 4 {
		if four[i:i+4] != string([]byte{four[i], four[i], four[i], four[i]}) {
			t.Errorf("random:4 is %s", four)
		}
	}
}

// fileOrderOf writes down which of four files of eight blocks each operation goes to.
func fileOrderOf(service fiojob.FileService, open int, key uint64) string {
	streams := make([]Stream, 4)
	for i := range streams {
		streams[i].Left = 8
	}
	o := NewFileOrder(service, open, len(streams), key)
	var out []byte
	for at := o.next(streams); at >= 0; at = o.next(streams) {
		streams[at].Left--
		out = append(out, byte('A'+at))
	}
	return string(out)
}

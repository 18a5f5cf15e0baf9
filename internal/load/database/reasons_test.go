package database

import (
	"fmt"
	"strings"
	"testing"
)

// The cause of a server that does not start may be in the middle of its log, and is in the message, whatever the pieces are in which it comes.
func TestReasons(t *testing.T) {
	var log strings.Builder
	for i := range 40 {
		if fmt.Fprintf(&log, "note %d\n", i); i == 20 {
			log.WriteString("[ERROR] cannot map 100 TiB\n")
		}
	}
	for size := 1; size < 50; size += 7 {
		r := newReasons(func(line string) bool { return strings.Contains(line, "[ERROR]") })
		for text := log.String(); text != ""; {
			n, _ := r.Write([]byte(text[:min(size, len(text))]))
			text = text[n:]
		}
		if got := r.quoted(); got != ": [ERROR] cannot map 100 TiB" {
			t.Errorf("in pieces of %d bytes: %q", size, got)
		}
		if r.running(); r.errors() != "" || !strings.HasSuffix(r.quoted(), "note 39") {
			t.Errorf("once it runs: %q, %q", r.errors(), r.quoted())
		}
	}
	r := newReasons(nil)
	_, _ = r.Write([]byte(strings.Repeat("x", 3*logLineBytesMax) + "\nlast\n"))
	if got := r.quoted(); !strings.HasSuffix(got, "; last") || len(got) > logLineBytesMax {
		t.Errorf("%d bytes", len(got))
	}
}

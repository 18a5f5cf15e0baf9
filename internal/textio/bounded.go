package textio

import (
	"bytes"
	"sync"
)

// Head is a writer that keeps the first MaxBytes written and discards the rest. It never fails, so that a program that writes to
// it never blocks. Safe for concurrent use.
type Head struct {
	MaxBytes int

	mu   sync.Mutex
	kept []byte
	cut  bool
}

func (h *Head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keep := min(len(p), h.MaxBytes-len(h.kept))
	h.kept, h.cut = append(h.kept, p[:keep]...), h.cut || keep < len(p)
	return len(p), nil
}

// Bytes returns a copy of the kept bytes.
func (h *Head) Bytes() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return bytes.Clone(h.kept)
}

// String returns what was kept as valid UTF-8.
func (h *Head) String() string { return string(bytes.ToValidUTF8(h.Bytes(), nil)) }

// Cut reports whether any bytes were discarded.
func (h *Head) Cut() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cut
}

// Tail is a writer that keeps the last MaxBytes written. Like Head it never fails and may be used concurrently.
type Tail struct {
	MaxBytes int

	mu   sync.Mutex
	kept []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.MaxBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String returns what was kept as valid UTF-8.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.kept, nil))
}

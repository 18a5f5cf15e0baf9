package blockdev

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// memory is a device in memory.
type memory struct {
	b      []byte
	synced bool
}

func (m *memory) WriteAt(b []byte, offset int64) (int, error) {
	m.synced = false
	return copy(m.b[offset:], b), nil
}

func (m *memory) Sync() error {
	m.synced = true
	return nil
}

func TestClaim(t *testing.T) {
	tag := Tag{Controller: "c-1", Run: "run-7", Identity: "S4EVNF0M", Claimed: time.Unix(1_700_000_000, 0).UTC()}
	for _, size := range []int64{claimSizeMin, 32<<20 + 512, 32<<20 - 4096} {
		m := &memory{b: bytes.Repeat([]byte{0xa5}, int(size))}
		if err := Claim(m, size, tag); err != nil || !m.synced {
			t.Fatalf("size %d: %v, flushed %v", size, err, m.synced)
		}
		got, err := readTag(bytes.NewReader(m.b), size)
		want := tag
		want.SizeBytes = size
		if err != nil || got == nil || *got != want {
			t.Errorf("size %d: read %+v, %v, want %+v", size, got, err, want)
		}
		if usable := UsableBytes(size); usable%ClaimBytes != 0 || usable+ClaimBytes > size || size-usable >= 2*ClaimBytes {
			t.Errorf("size %d: %d bytes are usable", size, usable)
		}
		if size > wipeHead+wipeTail && (m.b[wipeHead] != 0xa5 || m.b[wipeHead-1] != 0 || m.b[size-1] != 0) {
			t.Errorf("size %d: other parts than the two ends were emptied", size)
		}
	}
}

// Every structure that is found on a whole device is gone after a claim: what is found later was put there later.
func TestClaimRemovesSignatures(t *testing.T) {
	const size = 32 << 20
	for _, s := range samples() {
		m := &memory{b: make([]byte, size)}
		copy(m.b[(s.offset+size)%size:], s.text)
		if found, _ := signatures(bytes.NewReader(m.b), size); len(found) == 0 {
			t.Errorf("%s: not found before", s.title)
		}
		if err := Claim(m, size, Tag{Controller: "c"}); err != nil {
			t.Fatal(err)
		}
		if found, err := signatures(bytes.NewReader(m.b), size); err != nil || len(found) > 0 {
			t.Errorf("%s: found after the claim: %v, %v", s.title, found, err)
		}
	}
}

func TestClaimRefuses(t *testing.T) {
	m := &memory{b: make([]byte, 8<<20)}
	for title, err := range map[string]error{
		"small device":      Claim(m, claimSizeMin-1, Tag{Controller: "c"}),
		"no controller":     Claim(m, 8<<20, Tag{}),
		"name that is long": Claim(m, 8<<20, Tag{Controller: strings.Repeat("c", 65)}),
	} {
		if err == nil {
			t.Errorf("%s: accepted", title)
		}
	}
	if !bytes.Equal(m.b, make([]byte, 8<<20)) {
		t.Error("something was written")
	}
}

// A tag with any byte changed is none.
func TestDamagedTag(t *testing.T) {
	block, err := Tag{Controller: "c-1", Run: "run-7", SizeBytes: 64 << 20}.encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range claimLength {
		damaged := bytes.Clone(block[:claimLength])
		damaged[i] ^= 0x10
		if tag := decode(damaged); tag != nil {
			t.Errorf("byte %d: %+v", i, tag)
		}
	}
}

func FuzzTag(f *testing.F) {
	block, _ := Tag{Controller: "c-1", Run: "run-7", SizeBytes: 64 << 20}.encode()
	f.Add(block[:claimLength])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < claimLength {
			return
		}
		if tag := decode(b); tag != nil {
			if _, err := tag.encode(); err != nil && tag.Controller != "" {
				t.Error(err)
			}
		}
	})
}

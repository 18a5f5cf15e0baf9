package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestLeaseSecret(t *testing.T) {
	h := NewHolder(`<run> & "1"`, 7)
	h.Renewed = time.Now().UTC().Truncate(time.Second)
	text, err := secretText(secretUse, h)
	if err != nil {
		t.Fatal(err)
	}
	back, err := parseSecret(text)
	if err != nil || back.Run != h.Run || back.ID != h.ID || back.Process != h.Process || !back.Renewed.Equal(h.Renewed) || back.Fence != h.Fence {
		t.Errorf("%+v came back as %+v, %v", h, back, err)
	}
	other, err := parseSecret([]byte(`<secret><uuid>` + h.ID + `</uuid><description>mine</description></secret>`))
	if err != nil || other.ID != h.ID || other.Run != "unknown" || !other.Renewed.IsZero() {
		t.Errorf("a foreign secret: %+v, %v", other, err)
	}
}

func FuzzLease(f *testing.F) {
	text, err := secretText(secretUse, NewHolder("run-1", 0))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(text), "", "<secret/>", "<secret><uuid>--help</uuid></secret>", strings.Repeat("<a>", 1000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := parseSecret(text)
		if err == nil && !secretID.MatchString(h.ID) {
			t.Errorf("id %q", h.ID)
		}
		s := Secrets{Query: func(context.Context, ...string) ([]byte, error) { return text, nil }}
		if _, err := s.holders(t.Context(), secretUse); err != nil {
			_ = err // unexpected output of a host is ignored
		}
	})
}

// kept is a libvirt that has the parts of these holders.
func kept(t *testing.T, holders map[string]Holder) Secrets {
	return Secrets{
		Query: func(_ context.Context, args ...string) ([]byte, error) {
			if args[0] == "secret-list" {
				list := ""
				for id := range holders {
					list += fmt.Sprintf(" %s   tls %s%s\n", id, secretPart, id)
				}
				return []byte(list), nil
			}
			return secretText(secretPart, holders[strings.TrimPrefix(args[1], "--secret=")])
		},
		Change: func(_ context.Context, _ []byte, args ...string) ([]byte, error) {
			id, ok := strings.CutPrefix(args[1], "--secret=")
			if args[0] != "secret-undefine" || !ok {
				t.Errorf("changed by %q", args)
				return nil, errors.New("unexpected")
			}
			delete(holders, id)
			return nil, nil
		},
	}
}

// The parts of the dead are swept on the machine itself, however many; elsewhere a part that looks old counts, and too many are an error.
func TestPartsOfTheDead(t *testing.T) {
	far := func(age time.Duration) Holder {
		h := NewHolder("far", 0)
		h.Process.Boot, h.Renewed = "another", time.Now().Add(-age)
		return h
	}
	alive, old := far(time.Minute), far(Life+2*skewMax)
	holders := map[string]Holder{alive.ID: alive, old.ID: old}
	s := kept(t, holders)
	if parts, err := s.Parts(t.Context()); err != nil || len(parts) != 2 {
		t.Errorf("of one that is alive and one that may be: %d, %v", len(parts), err)
	}
	for range secretsPerUse {
		dead := NewHolder("killed", 0) // this process has no such lease
		dead.Renewed = time.Now()
		holders[dead.ID] = dead
	}
	if parts, err := s.Parts(t.Context()); err == nil {
		t.Errorf("%d parts of %d", len(parts), len(holders))
	}
	s.sweep(t.Context())
	if _, there := holders[alive.ID]; !there || len(holders) != 1 {
		t.Errorf("%d are left, the living one: %v", len(holders), there)
	}
	if parts, err := s.Parts(t.Context()); err != nil || len(parts) != 1 || parts[0].ID != alive.ID {
		t.Errorf("parts %+v, %v", parts, err)
	}
}

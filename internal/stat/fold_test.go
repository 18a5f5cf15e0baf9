package stat_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/braggdev/bragg/internal/stat"
)

// FuzzFolded: what is read folded and unfolded is what the general reader reads, or is refused; nothing crashes.
func FuzzFolded(f *testing.F) {
	var h stat.Histogram
	f.Add(h.AppendJSON(nil))
	for _, v := range []uint64{100, 101, 300, 1 << 40} {
		h.Record(v)
	}
	good := h.AppendJSON(nil)
	f.Add(good)
	f.Add(h.AppendExact(nil))
	f.Add(h.AppendFolded(nil))
	f.Add(append(bytes.Split(good, []byte(`,"b":`))[0], '}')) // without buckets
	f.Add([]byte(`{"n":1,"sum":5,"sq":25,"min":5,"max":5}`))
	f.Add([]byte(`{"n":1,"sum":5,"min":5,"max":5,"b":"FB"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := stat.Tokens{Data: text}
		var folded, got, want stat.Histogram
		if folded.ReadFolded(&r); r.Bad || r.Pos != len(text) || got.Unfold(&folded) != nil || folded.Count() == 0 {
			return
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%s is read folded, and not by the general reader: %v", text, err)
		}
		if a, b := got.AppendJSON(nil), want.AppendJSON(nil); !bytes.Equal(a, b) {
			t.Errorf("%s\nfolded: %s\nwhole:  %s", text, a, b)
		}
	})
}

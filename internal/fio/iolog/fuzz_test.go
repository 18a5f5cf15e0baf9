package iolog_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/iolog"
)

// FuzzScan gives any bytes to the reader: it must not panic, must stay within its bounds, must read the same twice, and
// what it read must be read again from what is written of it.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		"", "fio version 3 iolog\n20 a add\n24 b add\n153 a open\n157 a read 0 65536\n180 b write 131072 4096\n190 a sync 0 0\n195 a close\n",
		"fio version 2 iolog\r\n/d/x add\r\n/d/x open\r\n/d/x wait 2000 0\r\n/d/x trim 0 65536\r\n/d/x datasync 0 0\r\n/d/x close\r\n",
		"fio version 2 iolog\na b add\na b read 9223372036854775807 18446744073709551615\n", "fio version 3 iolog\n1 a add\n2 a read 1",
		"fio version 3 iolog\n9 a add\n9 a read 0 1\nfio version 3 iolog\n1 a read 0 1\n", "fio version 2 iolog\n" + strings.Repeat("x", 20000),
		"\x07tae\x01\x00\x00\x00", "eat\x07\x00\x00\x00\x01",
	} {
		f.Add([]byte(seed), uint8(0))
		f.Add([]byte(seed), uint8(255))
	}
	f.Fuzz(func(t *testing.T, text []byte, how uint8) {
		o := iolog.Options{WaitsOfFio: how&1 != 0, SpeedPercent: int64(how & 6 * 30), Scale: int64(how >> 3 & 3), Align: int64(how>>5&1) * 4096}
		if how&64 != 0 {
			o.Redirect = "x"
		}
		o.Skip[iolog.Write] = how&128 != 0
		s, err := iolog.Scan("f", bytes.NewReader(text), o)
		if err != nil {
			return
		}
		r, err := iolog.NewReader("f", bytes.NewReader(text), o)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, file := range s.Files {
			names = append(names, file.Name)
		}
		var again bytes.Buffer
		w, err := iolog.NewWriter(&again, 3, names)
		if err != nil {
			t.Fatal(err)
		}
		n, last := int64(0), int64(0)
		for {
			var a iolog.Action
			if err := r.Next(&a); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("the second reading: %v", err)
			}
			n++
			if a.Nanos < last || a.Offset < 0 || a.Size < 0 || int(a.File) >= len(s.Files) || a.Kind > iolog.DataSync ||
				a.Kind <= iolog.Trim && a.Offset+a.Size > s.Files[a.File].End || a.Kind <= iolog.Write && a.Size > s.SizeMax {
				t.Fatalf("%+v is beyond what the summary says: %+v", a, s)
			}
			last = a.Nanos
			if a.Nanos > 1e17 {
				a.Nanos = 1e17 // slower than recorded, beyond what a log may say
			}
			if err := w.Write(&a); err != nil {
				t.Fatal(err)
			}
		}
		var sum int64
		for _, k := range s.Operations {
			sum += k
		}
		if n != sum || last != s.Nanos || s.Schedule.Total() != s.Data() {
			t.Fatalf("%d operations until %d, the summary has %+v", n, last, s)
		}
		if err := w.Close(last); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.TrimSpace(name) != name || name == "" {
				return // such a name is not the same any more between blanks
			}
		}
		if last > 1e17 {
			return
		}
		second, err := iolog.Scan("again", bytes.NewReader(again.Bytes()), iolog.Options{})
		if err != nil || second.Operations != s.Operations || second.Bytes != s.Bytes {
			t.Fatalf("%v: %+v became %+v\n%s", err, s, second, again.String())
		}
	})
}

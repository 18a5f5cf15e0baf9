package textio_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/textio"
)

func TestShell(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"":                         nil,
		"ssh -o IdentityFile=/a h": {"ssh", "-o", "IdentityFile=/a", "h"},
		`fio '--name=a b' '' 'it'\''s' '$(x)' 'ä'`: {"fio", "--name=a b", "", "it's", "$(x)", "ä"},
	} {
		if got := textio.Shell(words...); got != want {
			t.Errorf("%q: got %s, want %s", words, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"OLTP":                  "OLTP",
		"Größe ≤ 3":             "Größe ≤ 3",
		"a\tb\r\nc":             "a b  c",
		"\x1b[31mred\x07":       "\uFFFD[31mred\uFFFD",
		"\u009b31m":             "\uFFFD31m",
		"ok\u202Egnp.exe":       "ok⟨U+202E⟩gnp.exe",
		"zero\u200Bwidth\uFEFF": "zero⟨U+200B⟩width⟨U+FEFF⟩",
		"a\u2028b":              "a\uFFFDb",
		"\xff\uFFFD":            "\uFFFD\uFFFD",
	} {
		if got := textio.Line(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got, want := textio.Lines("a\u202E\nb\x00"), "a⟨U+202E⟩\nb\uFFFD"; got != want {
		t.Errorf("lines: got %q, want %q", got, want)
	}
	if got, want := textio.Aligned("\ta\u202Eb\x1bü"), "\ta\uFFFDb\uFFFDü"; got != want {
		t.Errorf("aligned: got %q, want %q", got, want)
	}
	for most, want := range map[int]string{6: "größer", 5: "gr…er", 4: "gr…r", 1: "…"} {
		if got := textio.ClipMiddle("größer", most); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got, want := textio.Clip("größer", 4), "grö…"; got != want {
		t.Errorf("clip: got %q, want %q", got, want)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.StringMatching(`[a-z\n]{0,9}`)).Draw(t, "parts")
		most := rapid.IntRange(0, 20).Draw(t, "most")
		head, tail, all := textio.Head{MaxBytes: most}, textio.Tail{MaxBytes: most}, strings.Join(parts, "")
		for _, p := range parts {
			for _, w := range []io.Writer{&head, &tail} {
				if n, err := io.WriteString(w, p); n != len(p) || err != nil {
					t.Fatalf("wrote %d of %d: %v", n, len(p), err)
				}
			}
		}
		kept := min(most, len(all))
		if got := head.String(); got != all[:kept] || head.Cut() != (len(all) > most) {
			t.Fatalf("head of %q: %q, cut %v", all, got, head.Cut())
		}
		if got := tail.String(); got != all[len(all)-kept:] {
			t.Fatalf("tail of %q: %q", all, got)
		}
	})
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, want string
		end        error
	}{
		{"a\nb\r\n\n", "a|b|", io.EOF},
		{"a\nbroken", "a|broken", io.ErrUnexpectedEOF},
		{"a\n" + strings.Repeat("x", 101) + "\nb\n", "a", bufio.ErrTooLong},
		{"a\nb\n" + strings.Repeat("x", 101), "a|b", bufio.ErrTooLong},
		{strings.Repeat("x", 99) + "\n", strings.Repeat("x", 99), io.EOF},
		{"\n\n", "|", io.EOF},
		{"", "", io.EOF},
	} {
		in := textio.NewLineReader(iotest.OneByteReader(strings.NewReader(tt.text)), 100)
		var got []string
		var err error
		for err == nil {
			var line []byte
			if line, err = in.Next(); line != nil {
				got = append(got, string(line))
			}
		}
		if strings.Join(got, "|") != tt.want || !errors.Is(err, tt.end) {
			t.Errorf("%q: got %q and %v, want %q and %v", tt.text, got, err, tt.want, tt.end)
		}
	}
}

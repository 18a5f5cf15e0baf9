package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
)

const plainHead = "name: bad\ndisplay_name: Bad\nsummary: bad\ndescription: bad\nestimated_runtime: 60\n"

const plainTail = "vms: []\nworkloads: []\nresults: []\nsetup:\n  - test.Wait: {duration_secs: 1}\nrun:\n  - test.Wait: {duration_secs: 1}\n"

// generated are inputs too large or too binary for a file of their own.
var generated = map[string]func() string{
	"brackets": func() string { return plainHead + "tags: " + strings.Repeat("[", 200_000) + "\n" },
	"closed_brackets": func() string {
		return plainHead + "tags: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "\n" + plainTail
	},
	"braces":  func() string { return plainHead + "tags: " + strings.Repeat("{a: ", 50_000) + "\n" },
	"dashes":  func() string { return plainHead + "tags:\n  " + strings.Repeat("- ", 100_000) + "a\n" },
	"columns": func() string { return plainHead + "tags:\n" + staircase(1000) },
	"questions": func() string {
		return strings.Repeat("? ", 100_000) + "a\n"
	},
	"quoted_brackets": func() string { return plainHead + "tags: ['" + strings.Repeat("[", 200_000) + "']\n" + plainTail },
	"nul":             func() string { return plainHead + "tags: [\"a\x00b\"]\n" + plainTail },
	"invalid_utf8":    func() string { return plainHead + "tags: [\"a\xff\xfeb\"]\n" + plainTail },
	"utf16":           func() string { return "\xff\xfen\x00a\x00m\x00e\x00:\x00" },
	"binary":          func() string { return "\x7fELF\x02\x01\x01" + strings.Repeat("\x90\xcc\x01", 1000) },
	"controls":        func() string { return plainHead + "tags: [\"\x1b[2J\x07\"]\n" + plainTail },
	"long_line":       func() string { return plainHead + "tags: " + strings.Repeat("x", 900_000) + "\n" + plainTail },
	"long_key": func() string {
		return strings.Replace(plainHead+plainTail, "vms: []", "vms: [{g: {"+strings.Repeat("k", 900_000)+": 1}}]", 1)
	},
	"many_lines":   func() string { return plainHead + strings.Repeat("x: 1\n", 180_000) + plainTail },
	"many_tags":    func() string { return plainHead + strings.Repeat("{{ 1 }}", 140_000) + plainTail },
	"many_unknown": func() string { return plainHead + strings.Repeat("{{ a }}", 140_000) + plainTail },
	"many_anchors": func() string { return plainHead + "tags: [" + strings.Repeat("&a 1,", 150_000) + "]\n" + plainTail },
	"many_aliases": func() string {
		return plainHead + "one: &a 1\ntags: [" + strings.Repeat("*a ,", 150_000) + "]\n" + plainTail
	},
	"alias_of_text": func() string {
		return plainHead + "one: &a " + strings.Repeat("x", 900_000) + "\ntags: [" + strings.Repeat("*a ,", 4000) + "]\n" + plainTail
	},
	"merge_bomb": func() string { return plainHead + mergeBomb(12, 200) + plainTail },
	"merged_often": func() string {
		return plainHead + "base: &a {" + strings.Repeat("k: 1, ", 3) + manyKeys(20_000) + "}\n" +
			"uses: [" + strings.Repeat("{<<: *a},", 4000) + "]\n" + plainTail
	},
	"copied_values": func() string {
		return plainHead + "tags: [{% for i in range(8) %}" + strings.Repeat("[],", 170_000) + "{% endfor %}]\n" + plainTail
	},
	"nested_values": func() string {
		return plainHead + "tags: [" + strings.Repeat("[{a: 1, b: 2}, [3, [4, [5]]]],", 30_000) + "]\n" + plainTail
	},
	"many_comments": func() string { return plainHead + strings.Repeat("# c\n", 250_000) },
	"open_tags":     func() string { return plainHead + strings.Repeat("{{", 400_000) },
	"open_loops":    func() string { return plainHead + strings.Repeat("{% for a in [1] %}", 50_000) },
	"open_brackets": func() string { return plainHead + "{{ " + strings.Repeat("(", 900_000) + " }}" },
	"additions":     func() string { return plainHead + "tags: [{{ 1" + strings.Repeat("+1", 450_000) + " }}]\n" + plainTail },
	"too_long":      func() string { return plainHead + "# " + strings.Repeat("x", 1<<20) + "\n" + plainTail },
}

// mergeBomb has mappings each of which merges the one before it often.
func mergeBomb(levels, times int) string {
	var b strings.Builder
	b.WriteString("m0: &m0 {a: 1, b: 2}\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "m%d: &m%d {<<: [%s], k%d: [%s]}\n", i, i, strings.Repeat(fmt.Sprintf("*m%d ,", i-1), times), i, strings.Repeat(fmt.Sprintf("*m%d ,", i-1), times))
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1, ", i)
	}
	return b.String()
}

func staircase(steps int) string {
	var b strings.Builder
	for i := range steps {
		b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return b.String()
}

// checkBad loads a document that must be refused, with bounded memory and processor time, and compares what is said.
func checkBad(t *testing.T, path, name string) {
	t.Helper()
	usage := scenario.RecordChildren(t)
	_, err := scenario.Load(context.Background(), scenario.Source{Path: path}, scenario.Options{})
	if err == nil {
		t.Fatalf("%s loads without an error", name)
	}
	var list *diag.ListError
	var userErr *diag.Error
	if !errors.As(err, &list) && !errors.As(err, &userErr) || diag.ExitCode(err) != diag.ExitData {
		t.Errorf("the error %T has exit code %d, want %d", err, diag.ExitCode(err), diag.ExitData)
	}
	text := strings.ReplaceAll(explain(err), filepath.Dir(path)+string(filepath.Separator), "")
	if lines := strings.Count(text, "\n"); lines > 400 {
		t.Errorf("the complaint has %d lines", lines)
	}
	golden(t, filepath.Join("testdata", "bad", name+".golden"), text)
	for _, u := range *usage {
		if u.Memory > 256<<20 {
			t.Errorf("the child took %d MiB", u.Memory>>20)
		}
		if u.Processor > 2200*time.Millisecond {
			t.Errorf("the child took %v of processor time", u.Processor)
		}
	}
}

func TestBadInputIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	docs, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil || len(docs) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, doc := range docs {
		name := strings.TrimSuffix(filepath.Base(doc), ".yml")
		t.Run(name, func(t *testing.T) { checkBad(t, doc, name) })
	}
	for name, text := range generated {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.yml")
			if err := os.WriteFile(path, []byte(text()), 0o644); err != nil {
				t.Fatal(err)
			}
			checkBad(t, path, name)
		})
	}
}

// No known input reaches the memory bound, so the test uses a program that does.
func TestAChildThatTakesTooMuchMemoryIsKilled(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$", "__greedy")
	must(t, cmd.Start())
	ended := make(chan struct{})
	userErr := make(chan error, 1)
	go func() { userErr <- scenario.WatchChild(cmd.Process, ended) }()
	waitErr := cmd.Wait()
	close(ended)
	if err := <-userErr; err == nil || err.Error() != "takes more than 256 MiB of memory" {
		t.Errorf("the watcher says %v", err)
	}
	if waitErr == nil || waitErr.Error() != "signal: killed" {
		t.Errorf("the child ended with %v", waitErr)
	}
}

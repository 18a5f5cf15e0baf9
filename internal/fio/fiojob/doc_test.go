package fiojob_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/testreq"
)

const optionsPageHead = `# Options of job files

<!-- written by go test ./internal/fio/fiojob -run Documented -update -->

Every option of fio up to 3.42, those of its I/O engines included, and what Bragg does with it.
[The job file](jobfile.md) explains the format and the classes. Spellings in brackets mean the same option.

- **native**: the native engine does it; the last column says what it is.
- **ignored**: accepted without effect, because of what the last column says.
- **delegate**: the native engine refuses the file and offers the real fio.
- **refused**: refused by both.
- **native in bragg io, else …**: about whole jobs or the files that they make, so that workloads on the devices of a VM have
  no use for it.

`

// TestDocumented writes docs/formats/jobfile-options.md from the table and keeps it so, and checks that the table of
// docs/formats/jobfile.md lists every native option.
func TestDocumented(t *testing.T) {
	folder := filepath.Join(testreq.RepositoryRoot(t), "docs", "formats")
	text, err := os.ReadFile(filepath.Join(folder, "jobfile.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, natives, _ := strings.Cut(string(text), "## Native options")
	spellings, counts := map[string][]string{}, map[syntax.Class]int{}
	for _, name := range fiojob.OptionNames() {
		if to := syntax.Canonical(name); to != name {
			spellings[to] = append(spellings[to], "`"+name+"`")
		}
	}
	var rows strings.Builder
	hosted := 0
	for _, name := range fiojob.OptionNames() {
		if syntax.Canonical(name) != name {
			continue
		}
		info, known := fiojob.Describe(name)
		if !known || info.Text == "" || info.Value == "" {
			t.Errorf("option %s has no text or kind: %+v", name, info)
		}
		if info.Host == syntax.Native && !strings.Contains(natives, "`"+name+"`") {
			t.Errorf("native option %s is not in the table of jobfile.md", name)
		}
		counts[info.Class]++
		written := "`" + name + "`"
		if others := spellings[name]; len(others) > 0 {
			written += " (" + strings.Join(others, ", ") + ")"
		}
		class := string(info.Class)
		if info.Host != info.Class {
			class = string(info.Host) + " in bragg io, else " + class
		}
		if info.Host == syntax.Native && info.Class != syntax.Native {
			hosted++
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", written, class, info.Value, info.Text)
	}
	page := optionsPageHead + fmt.Sprintf("%d native, %d ignored, %d delegate, %d refused in workloads; %d of the last three are native in bragg io.\n\n",
		counts[syntax.Native], counts[syntax.Ignored], counts[syntax.Delegate], counts[syntax.Refused], hosted) +
		"| option | class | value | what it does, or why not |\n|---|---|---|---|\n" + rows.String()
	path := filepath.Join(folder, "jobfile-options.md")
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != page {
		t.Errorf("%s is not what the table says (rewrite with -update): %v", path, err)
	}
}

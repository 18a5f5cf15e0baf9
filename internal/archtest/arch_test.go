package archtest

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

const module = "github.com/braggdev/bragg/"

// rule is one row of the table: what packages that match may import.
type rule struct {
	pattern    string
	everything bool
	allowed    []string // or, with everything, what is excepted
}

// familyBuiltin are packages that see the members of their family and what their family sees.
var familyBuiltin = []string{"builtin", "targettest", "loadtest"}

func TestImportsFollowTheMap(t *testing.T) {
	rules := readTable(t)
	forAll, _ := ruleFor(rules, "all")
	for folder, list := range imports(t) {
		name := ours(folder)
		r, ok := ruleFor(rules, name)
		if !ok {
			t.Errorf("package %s is not in the table of docs/ARCHITECTURE.md", name)
			continue
		}
		for _, imported := range list {
			if strings.HasPrefix(imported, module) && !r.allows(name, ours(imported)) && !forAll.allows("", ours(imported)) {
				t.Errorf("package %s imports %s, which the table of docs/ARCHITECTURE.md does not allow", name, ours(imported))
			}
		}
	}
}

// boundTo names outside libraries that belong in certain internal packages.
var boundTo = map[string][]string{
	"github.com/prometheus/prometheus": {"metric"},
	"github.com/spf13/cobra":           {"console", "cli", "cli/runref", "cli/results", "cli/analyze", "cli/doctor", "cli/exporter", "cli/targets", "fio/command", "lab/command"},
	"k8s.io/":                          {"target/kube", "target/kube/api", "target/kube/disks", "target/kube/events", "target/kube/keys", "target/kube/kubelock", "target/kube/meter", "target/kube/object", "target/kube/rights", "target/kube/virt"},
	"github.com/chromedp":              nil,
	"github.com/vmware/govmomi":        {"collect/vsphere", "lab/vcsim", "target/vsphere", "target/vsphere/vcenter", "target/vsphere/record", "target/vsphere/hardware", "target/vsphere/task", "target/vsphere/leasevm", "target/vsphere/drs", "target/vsphere/storage", "target/vsphere/meter", "target/vsphere/events", "target/vsphere/ova", "target/vsphere/privilege"},
}

func TestOutsideLibrariesStayInTheirPlace(t *testing.T) {
	for folder, list := range imports(t) {
		for _, imported := range list {
			for library, places := range boundTo {
				if strings.HasPrefix(imported, library) && !slices.Contains(places, ours(folder)) {
					t.Errorf("package %s imports %s, which belongs in %q only", ours(folder), imported, places)
				}
			}
		}
	}
}

// The product links nothing that is for tests.
func TestTestingStaysInTests(t *testing.T) {
	for _, f := range parse(t).Files {
		for _, spec := range f.Tree.Imports {
			if !mayImport(f.Path, strings.Trim(spec.Path.Value, `"`)) {
				t.Errorf("%s imports %s: that is for tests and for the packages that only they use", f.Path, spec.Path.Value)
			}
		}
	}
}

// mayImport reports whether a file may import a package as far as that is one for tests.
func mayImport(file, imported string) bool {
	if imported != "testing" && !strings.HasPrefix(imported, "testing/") || strings.HasSuffix(file, "_test.go") {
		return true
	}
	folder := path.Base(path.Dir(file))
	return strings.HasSuffix(folder, "test") || slices.Contains([]string{"testreq", "simdb", "kubelab"}, folder)
}

func TestImportsOfTestingAreSeen(t *testing.T) {
	for file, want := range map[string]bool{
		"internal/a/a.go": false, "internal/atest.go": false, "internal/testing/a.go": false, "cmd/bragg/main.go": false, "a.go": false,
		"internal/a/a_test.go": true, "internal/a/atest/a.go": true, "internal/testreq/loop.go": true, "internal/load/loadtest/simdb/simdb.go": true,
	} {
		for _, imported := range []string{"testing", "testing/fstest"} {
			if mayImport(file, imported) != want {
				t.Errorf("%s may import %s: %v, want %v", file, imported, !want, want)
			}
		}
		if !mayImport(file, "io/fs") || !mayImport(file, "github.com/braggdev/testing") {
			t.Errorf("%s may not import what is not for tests", file)
		}
	}
}

func TestAgentStaysSmall(t *testing.T) {
	root := testreq.RepositoryRoot(t)
	out := filepath.Join(t.TempDir(), "bragg-agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./cmd/bragg-agent")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, text)
	}
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= 15_000_000 {
		t.Errorf("the stripped agent has %d bytes, want less than 15,000,000", info.Size())
	}
	deps := exec.Command("go", "list", "-deps", "./cmd/bragg-agent")
	deps.Dir = root
	text, err := deps.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(text)) {
		for _, heavy := range []string{"github.com/prometheus/prometheus/", "k8s.io/", "github.com/vmware/govmomi"} {
			if strings.HasPrefix(line, heavy) {
				t.Errorf("the agent links %s", line)
			}
		}
	}
}

func readTable(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testreq.RepositoryRoot(t), "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "### Allowed internal imports")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md has no table of allowed imports")
	}
	var rules []rule
	for line := range strings.Lines(after) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[0]) == "package" {
			if len(rules) > 0 {
				break
			}
			continue
		}
		right := strings.TrimSpace(cells[1])
		r := rule{}
		switch {
		case right == "–":
		case strings.HasPrefix(right, "everything"):
			r.everything = true
			r.allowed = strings.Fields(strings.TrimPrefix(strings.TrimPrefix(right, "everything"), " except"))
		default:
			r.allowed = strings.Fields(right)
		}
		for name := range strings.SplitSeq(cells[0], ",") {
			r.pattern = strings.TrimSpace(name)
			rules = append(rules, r)
		}
	}
	if len(rules) < 20 {
		t.Fatalf("read only %d rows of the table", len(rules))
	}
	return rules
}

func ruleFor(rules []rule, name string) (rule, bool) {
	for _, r := range rules {
		if r.pattern == name {
			return r, true
		}
	}
	family, _, nested := strings.Cut(name, "/")
	for _, r := range rules {
		if nested && r.pattern == family+"/X" {
			return r, true
		}
	}
	return rule{}, false
}

// allows reports whether the package called name may import other.
func (r rule) allows(name, other string) bool {
	family, member, nested := strings.Cut(name, "/")
	if nested && (strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")) {
		return true // a folder and what lies in it
	}
	if nested && slices.Contains(familyBuiltin, member) && strings.HasPrefix(other, family+"/") {
		return true
	}
	if r.everything {
		return !slices.ContainsFunc(r.allowed, func(except string) bool {
			return other == except || strings.HasPrefix(other, except+"/")
		})
	}
	return slices.Contains(r.allowed, other)
}

func ours(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "internal/")
}

func TestAnExceptionHoldsForWhatLiesBelow(t *testing.T) {
	r := rule{everything: true, allowed: []string{"report"}}
	for other, want := range map[string]bool{"report": false, "report/page": false, "reporting": true, "result": true} {
		if r.allows("session", other) != want {
			t.Errorf("session may import %s: %v, want %v", other, !want, want)
		}
	}
}

package builtin_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/testreq"
)

// TestMain is also the program of labs, and that of hosts over ssh.
func TestMain(m *testing.M) {
	labtest.Main()
	if len(os.Args) > 1 {
		switch {
		case os.Args[1] == hostvm.Verb:
			os.Exit(hostvm.Command(context.Background(), os.Args[2:], "test"))
		case strings.HasPrefix(os.Args[1], "{"):
			os.Exit(agent.Command(context.Background(), os.Args[1:], agent.Program{
				Generators: map[string]load.Generator{}, Version: "test", Stderr: os.Stderr,
			}))
		}
	}
	goleak.VerifyTestMain(m)
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSpecs(t *testing.T) {
	file := write(t, "provider: fake\nnodes: 3\nname: from a file\n")
	for spec, want := range map[string]struct {
		provider, name string
		nodes          int
	}{
		"": {"local", "local", 4}, "local": {"local", "local", 4}, "local:7": {"local", "local", 7},
		"fake": {"fake", "fake", 4}, "fake:12": {"fake", "fake", 12}, file: {"fake", "from a file", 3},
	} {
		tgt, err := builtin.Open(t.Context(), spec, target.OpenOptions{Dir: t.TempDir()})
		if err != nil {
			t.Errorf("%q: %v", spec, err)
			continue
		}
		inventory, err := tgt.Inventory(t.Context())
		if err != nil || inventory.Provider != want.provider || inventory.Name != want.name || len(inventory.Nodes) != want.nodes {
			t.Errorf("%q: got %+v, %v", spec, inventory, err)
		}
		if !inventory.PowerAllowed {
			t.Errorf("%q: its nodes are made up, and may not be switched", spec)
		}
		if err := tgt.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBadSpecs(t *testing.T) {
	for spec, want := range map[string]struct {
		exit int
		text string
	}{
		"local:0":                                {diag.ExitUsage, "invalid number of nodes"},
		"local:-1":                               {diag.ExitUsage, "invalid number of nodes"},
		"local:":                                 {diag.ExitUsage, "invalid number of nodes"},
		"local:four":                             {diag.ExitUsage, "invalid number of nodes"},
		"local:99999":                            {diag.ExitUsage, "want 1 to"},
		"fake:99999999999999999999":              {diag.ExitUsage, "invalid number of nodes"},
		"locla":                                  {diag.ExitUsage, "no such file"},
		"/no/such/file.yml":                      {diag.ExitUsage, "no such file"},
		"/":                                      {diag.ExitUsage, "not a regular file"},
		"/dev/zero":                              {diag.ExitUsage, "not a regular file"},
		write(t, "provider: fake\nnodse: 3\n"):   {diag.ExitData, "nodse"},
		write(t, "provider: vmware\nnodes: 3\n"): {diag.ExitData, "vmware"},
		write(t, strings.Repeat("# x\n", 1<<19)): {diag.ExitData, "more than"},
		write(t, "provider: fake\nnodes: 1000\n"):    {diag.ExitUsage, "want 1 to"},
		write(t, "provider: local\noptions: {a: b}"): {diag.ExitData, "unknown option"},
	} {
		tgt, err := builtin.Open(t.Context(), spec, target.OpenOptions{Dir: t.TempDir()})
		if err == nil {
			_ = tgt.Close()
			t.Errorf("%q was opened", spec)
			continue
		}
		if diag.ExitCode(err) != want.exit || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%q: got %v with exit code %d", spec, err, diag.ExitCode(err))
		}
	}
}

func TestCheckTellsEverything(t *testing.T) {
	inventory, list := builtin.Check(t.Context(), "fake:3", target.OpenOptions{})
	if len(list) > 0 || len(inventory.Nodes) != 3 {
		t.Errorf("got %+v, %v", inventory, list)
	}
	_, list = builtin.Check(t.Context(), write(t, "provider: fake\nnaem: x\nallow: {power: on}\n"), target.OpenOptions{})
	if len(list) != 2 || list[0].Pos.Line != 2 || list[1].Pos.Line != 3 {
		t.Errorf("got %v", list)
	}
	t.Setenv("BRAGG_TEST_SECRET", "hunter2")
	file := write(t, "provider: fake\ncredentials:\n  a: {secret: {env: BRAGG_TEST_SECRET}}\n  b: {secret: {env: BRAGG_TEST_NONE}}\n"+
		"  c: {secret: {file: /no/such/file}}\n")
	inventory, list = builtin.Check(t.Context(), file, target.OpenOptions{})
	if len(list) != 2 || !strings.Contains(list[0].Message, `"b"`) || !strings.Contains(list[1].Message, `"c"`) {
		t.Errorf("got %v", list)
	}
	if len(inventory.Nodes) != 4 {
		t.Error("a missing secret hides the inventory")
	}
	_, list = builtin.Check(t.Context(), "local", target.OpenOptions{})
	if !list.HasErrors() {
		t.Error("a target that cannot be opened has no problem")
	}
	dir := t.TempDir()
	opened, err := builtin.Open(t.Context(), "local", target.OpenOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.(target.NodePower).PowerOffNode(t.Context(), "node-2"); err != nil {
		t.Fatal(err)
	}
	_ = opened.Close()
	_, list = builtin.Check(t.Context(), "local", target.OpenOptions{Dir: dir})
	if len(list) != 1 || list.HasErrors() || !strings.Contains(list[0].Message, "node-2") {
		t.Errorf("got %v", list)
	}
}

func names() []string {
	var all []string
	for _, p := range builtin.Providers() {
		all = append(all, p.Name)
	}
	return all
}

func TestProvidersAreDescribed(t *testing.T) {
	for _, p := range builtin.Providers() {
		if p.Name == "" || p.Summary == "" || p.Open == nil {
			t.Errorf("provider %+v is incomplete", p)
		}
	}
	var schema struct {
		Properties struct {
			Provider struct {
				Enum []string `json:"enum"`
			} `json:"provider"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(target.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(schema.Properties.Provider.Enum, names()) {
		t.Errorf("the schema knows the providers %v, the program %v", schema.Properties.Provider.Enum, names())
	}
}

// The examples of the documentation are target files.
func TestDocumentedExamples(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testreq.RepositoryRoot(t), "docs", "formats", "target.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 2 {
		t.Fatalf("found %d examples", len(examples))
	}
	for _, example := range examples {
		if _, list := target.ParseConfig("target.md", []byte(example[1]), builtin.Providers()); len(list) > 0 {
			t.Errorf("%s\n%v", example[1], list)
		}
	}
}

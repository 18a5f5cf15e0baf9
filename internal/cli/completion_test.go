package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// bashCompletion is where the package bash-completion keeps its functions.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// TestRealBashCompletes lets bash itself complete lines: it calls the function that the script registers, as it does
// on Tab.
func TestRealBashCompletes(t *testing.T) {
	bash := testreq.Program(t, "bash")
	if _, err := os.Stat(bashCompletion); err != nil {
		testreq.Skip(t, "bash-completion is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "bragg")); err != nil {
		t.Fatal(err)
	}
	hostile := "a $(touch pwned) `touch pwned`;touch pwned.yml"
	if err := os.WriteFile(filepath.Join(dir, hostile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const script = `
source ` + bashCompletion + `
bragg completion bash >completion.bash && source ./completion.bash || exit 9
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
read -ra COMP_WORDS <<<"$1"
[[ $1 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
$(complete -p bragg | sed 's/.*-F \([^ ]*\).*/\1/') bragg "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
`
	complete := func(line string) string {
		cmd := exec.Command(bash, "--norc", "--noprofile", "-c", script, "bash", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), runAsBragg+"=1", "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir, "XDG_STATE_HOME="+dir)
		var faults strings.Builder
		cmd.Stderr = &faults // compopt complains there without a terminal
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("complete %q: %v\n%s%s", line, err, out, faults.String())
		}
		return strings.TrimSpace(string(out))
	}
	for line, want := range map[string]string{
		"bragg comple":                     "completion",
		"bragg run four_c":                 "four_corners",
		"bragg run oltp --eng":             "--engine",
		"bragg plan oltp --engine nat":     "native",
		"bragg plan oltp --engine=nat":     "native",
		"bragg schema nodes.PowerOf":       "nodes.PowerOff",
		"bragg run oltp --target fa":       "fake",
		"bragg completion power":           "powershell",
		"bragg run four_corners --set vms": "vms_per_node=",
	} {
		if got, _, _ := strings.Cut(complete(line), " "); got != want {
			t.Errorf("%q completes to %q, want %q", line, got, want)
		}
	}
	if got := complete("bragg run oltp --target "); !strings.Contains(got, "fake") {
		t.Errorf("targets are %q", got)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "pwned*")); len(files) > 0 {
		t.Errorf("completing ran a file name as a program")
	}
}

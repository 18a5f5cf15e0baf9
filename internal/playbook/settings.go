package playbook

import (
	"crypto/sha256"
	_ "embed" // callback.py
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// callback writes the tasks of a playbook to descriptor 3, one JSON object a line.
//
//go:embed callback.py
var callback []byte

// settings are the files and the environment of ansible. Everything is in a private folder: no configuration, plugin or cache of
// the user is read, and nothing is left.
type settings struct {
	private string
	known   string // file of host keys that this run has seen
}

// controlBytesMax is the length of the path of a shared connection's socket, as ansible names it below a folder, with what ssh
// appends while it opens it.
const (
	socketBytesMax  = 107
	controlBytesMax = len("/cp/0123456789") + len(".0123456789abcdef")
)

const configText = `[defaults]
callback_plugins = %[1]s/callbacks
callbacks_enabled = bragg_tasks
local_tmp = %[1]s/tmp
fact_caching_connection = %[1]s/facts
retry_files_enabled = False
nocows = True
host_key_checking = True
timeout = 30
[ssh_connection]
ssh_args = %[2]s
control_path_dir = %[1]s/cp
retries = 1
`

// write makes the folders and files.
func (s *settings) write() error {
	for _, name := range []string{"callbacks", "tmp", "cp", "home"} {
		if err := os.Mkdir(filepath.Join(s.private, name), 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(s.private, "callbacks", "bragg_tasks.py"), callback, 0o600); err != nil {
		return err
	}
	// One connection for each machine, unless the path of its socket is too long, or has what ssh takes for a token: then each step of a task logs in again.
	args := "-o ControlMaster=auto -o ControlPersist=30s"
	if len(s.private)+controlBytesMax > socketBytesMax || strings.Contains(s.private, "%") {
		args = "-o ControlMaster=no"
	}
	return os.WriteFile(s.config(), fmt.Appendf(nil, configText, s.private, args), 0o600)
}

func (s *settings) config() string { return filepath.Join(s.private, "ansible.cfg") }

// keep writes a key once and returns the path of its file.
func (s *settings) keep(text string) (string, error) {
	sum := sha256.Sum256([]byte(text))
	path := filepath.Join(s.private, "key-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Lstat(path); err == nil {
		return path, nil
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// passed are the variables of the user's environment that ansible gets: where programs are, who the user is, and its keys.
var passed = []string{"PATH", "USER", "LOGNAME", "SSH_AUTH_SOCK", "TZ"}

func (s *settings) environment() []string {
	home := filepath.Join(s.private, "home")
	env := []string{
		"HOME=" + home, "ANSIBLE_HOME=" + home, "TMPDIR=" + filepath.Join(s.private, "tmp"), "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
		"ANSIBLE_CONFIG=" + s.config(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
	}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

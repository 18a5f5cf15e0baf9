package sshlink

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// Remote defines the program that runs at the other end of a link.
type Remote struct {
	// Program is its name there: of the cached copy, of its folder, and of the program searched in PATH. Verb is the hidden
	// command that serves; its argument is the directory that contains only the program and must be removed, or "check",
	// which makes it exit at once. Both consist of letters, digits, hyphens and underscores, because they are the only
	// parameters of a shell script.
	Program, Verb string
	// Find returns the build for a platform such as "linux/amd64".
	Find func(platform string) (*Build, error)
	// Folder is where the program is copied to on the host; "" is its temporary folder.
	Folder string
	// Keep leaves the copy in the user's cache folder on the host, for the next time.
	Keep bool
	// Options are passed to ssh with -o: "IdentityFile=…", "ProxyJump=…".
	Options []string
}

// Check is appended to a verb to check whether the program can run at all.
const Check = "check"

// marker begins the lines of the script below; any other output of a login shell is skipped.
const marker = "bragg-link "

// scriptText finds or receives the program on a host and executes it. Its text is constant: variable parts are lines on its
// standard input (hash, size in bytes or 0 lines later, folder, keep), so that no name can become a command. It is a single
// line without single quotes, backslashes and exclamation marks, because any login shell may run it: sh, bash, zsh, fish,
// csh. It removes the folder if it ends early; otherwise the program removes it after its start, because a running program
// does not need its file.
const scriptText = `umask 077; t=; ` +
	`clean() { test -z "$t" || rm -rf "$t"; }; trap clean EXIT; trap "exit 1" HUP INT TERM PIPE; ` +
	`say() { echo "bragg-link $*"; }; ` +
	`sum() { sha256sum < "$1" | cut -d " " -f 1; }; ` +
	`z=plain; command -v gzip > /dev/null 2>&1 && z=gzip; ` +
	`command -v sha256sum > /dev/null 2>&1 || { say lacks sha256sum; exit 1; }; ` +
	`say system $(uname -s) $(uname -m) $z; ` +
	`IFS= read -r want || exit 1; IFS= read -r folder || exit 1; IFS= read -r keep || exit 1; ` +
	`cache="${XDG_CACHE_HOME:-$HOME/.cache}/bragg"; ` +
	`for f in "$cache/PROGRAM-$want" "$(command -v PROGRAM)"; do ` +
	`if test -f "$f" && test -x "$f" && test "$(sum "$f")" = "$want"; then say has "$f"; exec "$f" VERB; fi; done; ` +
	`if test "$keep" = keep; then mkdir -p "$cache"; folder="$cache"; fi; ` +
	`t=$(mktemp -d "${folder:-${TMPDIR:-/tmp}}/PROGRAM.XXXXXXXXXX") || { say cannot make a folder for the program; exit 1; }; ` +
	`say wants "$t"; ` +
	`IFS= read -r size || exit 1; ` +
	`if test $z = gzip; then head -c "$size" | gzip -dc > "$t/PROGRAM"; else head -c "$size" > "$t/PROGRAM"; fi; ` +
	`test "$(sum "$t/PROGRAM")" = "$want" || { say cannot store the program in "$t"; exit 1; }; ` +
	`chmod 700 "$t/PROGRAM"; ` +
	`"$t/PROGRAM" VERB check || { say cannot run programs in "$t"; exit 1; }; ` +
	`if test "$keep" = keep; then mv "$t/PROGRAM" "$cache/PROGRAM-$want" && rmdir "$t" && t= && say runs && exec "$cache/PROGRAM-$want" VERB; exit 1; fi; ` +
	`say runs; exec "$t/PROGRAM" VERB "$t"`

// command is the command that ssh passes to the login shell.
func (r *Remote) command() string {
	return `exec /bin/sh -c '` + strings.NewReplacer("PROGRAM", r.Program, "VERB", r.Verb).Replace(scriptText) + `'`
}

// Build is a program for one platform.
type Build struct {
	sum   string // SHA-256, in hexadecimal digits
	plain []byte
	once  sync.Once
	gzip  []byte // valid after packed was called
}

// ReadBuild reads the build at path.
func ReadBuild(path string) (*Build, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read program for hosts: %w", err)
	}
	sum := sha256.Sum256(text)
	return &Build{sum: hex.EncodeToString(sum[:]), plain: text}, nil
}

// Builds are the builds for hosts; each platform's is read only once.
type Builds struct {
	// Path returns the path of the build for a platform; nil: there are no builds.
	Path func(platform string) (string, error)

	mu    sync.Mutex
	known map[string]*Build
}

// Find returns the build for a platform; see Remote.
func (b *Builds) Find(platform string) (*Build, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.known[platform]; known != nil {
		return known, nil
	}
	if b.Path == nil {
		return nil, fmt.Errorf("find the agent for %s: no agent directory is set", platform)
	}
	path, err := b.Path(platform)
	if err != nil {
		return nil, err
	}
	build, err := ReadBuild(path)
	if err == nil {
		if b.known == nil {
			b.known = map[string]*Build{}
		}
		b.known[platform] = build
	}
	return build, err
}

// packed returns the program compressed for gzip -d. It is made for the first host that needs it: hosts with a cached copy
// do not.
func (p *Build) packed() []byte {
	p.once.Do(func() {
		var b bytes.Buffer
		// The fastest level: half the size for one second of time.
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err == nil {
			_, err = z.Write(p.plain)
			err = errors.Join(err, z.Close())
		}
		if err == nil { // else nothing is sent, which the host refuses by its hash
			p.gzip = b.Bytes()
		}
	})
	return p.gzip
}

// platforms maps the output of uname to Go's names.
var platforms = map[string]string{
	"Linux x86_64": "linux/amd64", "Linux aarch64": "linux/arm64", "Linux arm64": "linux/arm64",
}

// bootstrap communicates with the script until the program runs.
func bootstrap(in io.Writer, out *textio.LineReader, r *Remote) error {
	system, err := said(out, "system ")
	if err != nil {
		return err
	}
	name, packing := system[:max(0, strings.LastIndexByte(system, ' '))], system[strings.LastIndexByte(system, ' ')+1:]
	platform, known := platforms[name]
	if !known {
		return &diag.Error{
			Code: "platform", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("it is a %s system", name),
			Hint: "jobs run on hosts with Linux on x86_64 or aarch64",
		}
	}
	p, err := r.Find(platform)
	if err != nil {
		return err
	}
	keep := ""
	if r.Keep {
		keep = "keep"
	}
	if _, err := fmt.Fprintf(in, "%s\n%s\n%s\n", p.sum, r.Folder, keep); err != nil {
		return err
	}
	answer, err := said(out, "")
	if err != nil || strings.HasPrefix(answer, "has ") {
		return err
	}
	if !strings.HasPrefix(answer, "wants ") {
		return refusedBy(answer)
	}
	text := p.plain
	if packing == "gzip" {
		text = p.packed()
	}
	// The script reads exactly these bytes and answers before it receives more.
	w := bufio.NewWriter(in)
	fmt.Fprintf(w, "%d\n", len(text))
	_, err = w.Write(text)
	if err == nil {
		err = w.Flush()
	}
	answer, wrong := said(out, "")
	switch {
	case wrong == nil && answer == "runs":
		return err
	case wrong == nil:
		return refusedBy(answer)
	case err != nil:
		return err
	}
	return wrong
}

// refusedBy returns the error for the script's answer when it gives up.
func refusedBy(answer string) error {
	e := &diag.Error{Code: "host-setup", Exit: diag.ExitUnavailable, Message: "it " + answer}
	switch {
	case strings.HasPrefix(answer, "cannot"):
		e.Hint = "--host-folder=DIR chooses another folder there, with room for the program and without noexec"
	case strings.HasPrefix(answer, "lacks"):
		e.Hint = "it is part of coreutils and of busybox"
	}
	return e
}

// noiseLinesMax bounds the output of a login shell before that of the script.
const noiseLinesMax = 1000

// said returns the script's next line, without marker and prefix.
func said(out *textio.LineReader, prefix string) (string, error) {
	for range noiseLinesMax {
		line, err := out.Next()
		if err != nil {
			return "", err
		}
		text, ours := strings.CutPrefix(string(line), marker)
		if !ours {
			continue
		}
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			return rest, nil
		}
		return "", refusedBy(text)
	}
	return "", fmt.Errorf("its login shell prints more than %d lines", noiseLinesMax)
}

// RemoveOwn removes only the folder that a program was copied to, which the script passes as the first argument after the
// verb: a running program does not need its file. executable is the program's own path.
func RemoveOwn(executable string, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	// The system reports the path of a program without links, and a host's temporary folder may be a link.
	folder, err := filepath.EvalSymlinks(filepath.Clean(arguments[0]))
	if err != nil {
		return fmt.Errorf("find the folder that this program was copied to: %w", err)
	}
	prefix := filepath.Base(executable) + "."
	if folder != filepath.Dir(executable) || !strings.HasPrefix(filepath.Base(folder), prefix) {
		return fmt.Errorf("%q is not the folder that this program was copied to", folder)
	}
	return errors.Join(os.Remove(executable), os.Remove(folder))
}

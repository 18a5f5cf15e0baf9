package iohosts

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
	"runtime"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
)

// Verb is the hidden verb that serves on a host. Behind it stands the folder that holds nothing but the program and is
// to be removed, or verbCheck.
const (
	Verb      = "__iohost"
	verbCheck = "check"
)

// marker begins the lines of the script below; whatever else a login shell prints is skipped.
const marker = "bragg-io "

// script finds or receives the program on a host and becomes it. Nothing is ever put into its text: what differs comes in
// lines on its standard input (hash, bytes to come or 0 lines later, folder, keep), so no name can become a command. It is
// one line without single quotes, backslashes and exclamation marks, because the login shell that it is handed to may be
// any: sh, bash, zsh, fish, csh. The folder is removed whenever it ends early, and by the program once that has started:
// a program that runs needs no name.
const script = `umask 077; t=; ` +
	`clean() { test -z "$t" || rm -rf "$t"; }; trap clean EXIT; trap "exit 1" HUP INT TERM PIPE; ` +
	`say() { echo "bragg-io $*"; }; ` +
	`sum() { sha256sum < "$1" | cut -d " " -f 1; }; ` +
	`z=plain; command -v gzip > /dev/null 2>&1 && z=gzip; ` +
	`command -v sha256sum > /dev/null 2>&1 || { say lacks sha256sum; exit 1; }; ` +
	`say system $(uname -s) $(uname -m) $z; ` +
	`IFS= read -r want || exit 1; IFS= read -r folder || exit 1; IFS= read -r keep || exit 1; ` +
	`cache="${XDG_CACHE_HOME:-$HOME/.cache}/bragg"; ` +
	`for f in "$cache/bragg-$want" "$(command -v bragg)"; do ` +
	`if test -f "$f" && test -x "$f" && test "$(sum "$f")" = "$want"; then say has "$f"; exec "$f" ` + Verb + `; fi; done; ` +
	`if test "$keep" = keep; then mkdir -p "$cache"; folder="$cache"; fi; ` +
	`t=$(mktemp -d "${folder:-${TMPDIR:-/tmp}}/bragg-io.XXXXXXXXXX") || { say cannot make a folder for the program; exit 1; }; ` +
	`say wants "$t"; ` +
	`IFS= read -r size || exit 1; ` +
	`if test $z = gzip; then head -c "$size" | gzip -dc > "$t/bragg"; else head -c "$size" > "$t/bragg"; fi; ` +
	`test "$(sum "$t/bragg")" = "$want" || { say cannot store the program in "$t"; exit 1; }; ` +
	`chmod 700 "$t/bragg"; ` +
	`"$t/bragg" ` + Verb + ` ` + verbCheck + ` || { say cannot run programs in "$t"; exit 1; }; ` +
	`if test "$keep" = keep; then mv "$t/bragg" "$cache/bragg-$want" && rmdir "$t" && t= && say runs && exec "$cache/bragg-$want" ` + Verb + `; exit 1; fi; ` +
	`say runs; exec "$t/bragg" ` + Verb + ` "$t"`

// remoteCommand is what ssh hands to the login shell.
const remoteCommand = `exec /bin/sh -c '` + script + `'`

// program is a build of bragg for one platform.
type program struct {
	sum   string // SHA-256, in hexadecimal digits
	plain []byte
	once  sync.Once
	gzip  []byte // valid after packed
}

// readProgram reads the build at path.
func readProgram(path string) (*program, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read program for hosts: %w", err)
	}
	sum := sha256.Sum256(text)
	return &program{sum: hex.EncodeToString(sum[:]), plain: text}, nil
}

// packed returns the program for gzip -d. It is made when the first host wants it: those that kept it need none.
func (p *program) packed() []byte {
	p.once.Do(func() {
		var b bytes.Buffer
		// The quickest level: half the bytes for a second of time.
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

// platforms are what uname says, and what Go calls it.
var platforms = map[string]string{
	"Linux x86_64": "linux/amd64", "Linux aarch64": "linux/arm64", "Linux arm64": "linux/arm64",
}

// bootstrap talks with the script until the program runs. find returns the program for a platform.
func bootstrap(in io.Writer, out *lines, o *Options, find func(platform string) (*program, error)) error {
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
	p, err := find(platform)
	if err != nil {
		return err
	}
	keep := ""
	if o.Keep {
		keep = "keep"
	}
	if _, err := fmt.Fprintf(in, "%s\n%s\n%s\n", p.sum, o.Folder, keep); err != nil {
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
	// The script reads just these bytes and answers before it is sent more.
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

// refusedBy is what the script says when it gives up.
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

// noiseLinesMax bounds what a login shell may print before the script does.
const noiseLinesMax = 1000

// said returns the script's next line, without marker and prefix.
func said(out *lines, prefix string) (string, error) {
	for range noiseLinesMax {
		line, err := out.line()
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

// missingBuild says what to build where a host has another platform.
func missingBuild(platform, beside string) error {
	arch := strings.TrimPrefix(platform, "linux/")
	return &diag.Error{
		Code: "platform", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("it is %s, and this bragg is %s/%s", platform, runtime.GOOS, runtime.GOARCH),
		Hint: fmt.Sprintf("put a bragg of the same version for it at %s; in a checkout of this version:\nmake bin/bragg-linux-%s",
			beside, arch),
	}
}

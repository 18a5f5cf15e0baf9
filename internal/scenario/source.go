package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// Source locates a scenario folder: Path on this machine, or FS.
type Source struct {
	Path string // of the folder, of its test.yml, or of a zip file of it

	FS   fs.FS  // rooted at the folder; used when Path is empty
	Name string // names the folder in messages, for FS

	// Trusted text ships with the program or was written by a test, and is rendered in this process. Other text is rendered in a
	// child process that can be killed.
	Trusted bool
}

// Size limits of a scenario.
const (
	documentBytesMax = 1 << 20
	fileBytesMax     = 1 << 20
	filesBytesMax    = 16 << 20
	filesMax         = 500
)

const documentName = "test.yml"

// folder is an opened scenario folder. Files outside it cannot be read through it.
type folder struct {
	path     string // on this machine; empty for an FS
	shown    string // name of the document in messages
	document string
	root     *os.Root
	fsys     fs.FS
	archive  *os.File // that fsys reads from
	zip      string   // its path
}

// wantedFile is a file that the document names.
type wantedFile struct {
	name string
	at   yamltree.Node
	what string
}

func (s Source) open() (*folder, error) {
	if s.Path == "" {
		if s.FS == nil {
			return nil, &diag.Error{Code: "no-scenario", Message: "no scenario is named", Exit: diag.ExitUsage}
		}
		return &folder{shown: path.Join(s.Name, documentName), document: documentName, fsys: s.FS}, nil
	}
	dir, document := s.Path, documentName
	info, err := os.Stat(s.Path)
	if err != nil {
		return nil, &diag.Error{Code: "scenario-not-found", Message: fmt.Sprintf("open scenario %q", s.Path),
			Hint: "name a folder with a test.yml, or a shipped scenario", Exit: diag.ExitData, Err: cause(err)}
	}
	if !info.IsDir() && strings.EqualFold(filepath.Ext(s.Path), ".zip") {
		return openZip(s.Path)
	}
	if !info.IsDir() {
		dir, document = filepath.Split(s.Path)
		if dir == "" {
			dir = "."
		}
		if ext := strings.ToLower(filepath.Ext(document)); ext != ".yml" && ext != ".yaml" {
			return nil, &diag.Error{Code: "not-a-scenario", Message: fmt.Sprintf("open scenario %q: its name does not end in .yml or .zip", s.Path),
				Hint: "name a folder with a test.yml", Exit: diag.ExitData}
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &diag.Error{Code: "scenario-not-found", Message: fmt.Sprintf("open scenario %q", s.Path),
			Exit: diag.ExitData, Err: cause(err)}
	}
	return &folder{path: dir, shown: filepath.Join(dir, document), document: document, root: root}, nil
}

func (d *folder) close() {
	if d.root != nil {
		d.root.Close()
	}
	if d.archive != nil {
		d.archive.Close()
	}
}

// read returns a regular file of at most limit bytes. It does not block on FIFOs and does not follow links that lead
// out of the folder.
func (d *folder) read(name string, limit int64) (string, error) {
	f, err := d.openFile(name)
	if err != nil {
		return "", cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", cause(err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("it is %s, not a file", describeMode(info.Mode()))
	}
	if info.Size() > limit {
		return "", fmt.Errorf("it has %d bytes and at most %d are allowed", info.Size(), limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", cause(err)
	}
	if int64(len(data)) > limit {
		return "", fmt.Errorf("it has more than %d bytes", limit)
	}
	return string(data), nil
}

func (d *folder) openFile(name string) (fs.File, error) {
	if d.fsys != nil {
		return d.fsys.Open(path.Clean(name))
	}
	return d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// near is a hint to a file whose name is like one that cannot be read, "" if there is none.
func (d *folder) near(name string) string {
	files := d.fsys
	if files == nil {
		files = d.root.FS()
	}
	below := path.Dir(filepath.ToSlash(name))
	entries, err := fs.ReadDir(files, below)
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries[:min(len(entries), filesMax)] {
		names = append(names, path.Join(below, e.Name()))
	}
	if near := diag.Nearest(name, names); near != "" && near != name {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

func describeMode(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// cause strips the operation and path from an error of the file system; the message around it names the file.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

func documentError(d *folder, err error) error {
	e := &diag.Error{Code: "scenario-unreadable", Message: fmt.Sprintf("read %q", d.shown), Exit: diag.ExitData, Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		e.Code, e.Hint = "not-a-scenario", "a scenario is a folder with a test.yml"
	}
	return e
}

// files reads every file that the document names and reports those that cannot be read.
func (p *parser) files(dir *folder) {
	total := 0
	for _, w := range p.wanted {
		if _, have := p.sc.Files[w.name]; have || w.name == "" {
			continue
		}
		if why := badFileName(w.name); why != "" {
			p.report(w.at, "bad-file", "files must be in the folder of the scenario", "%s: the file %q %s", w.what,
				w.name, why)
			continue
		}
		text, err := dir.read(w.name, fileBytesMax)
		if err != nil {
			p.report(w.at, "bad-file", dir.near(w.name), "%s: read %q: %v", w.what, w.name, err)
			continue
		}
		if total += len(text); total > filesBytesMax || len(p.sc.Files) >= filesMax {
			p.report(w.at, "too-many-files", "", "the scenario names more than %d files or %d bytes of them",
				filesMax, filesBytesMax)
			return
		}
		p.sc.Files[w.name] = text
	}
}

func badFileName(name string) string {
	switch {
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return "has characters that no file name has"
	case filepath.IsAbs(name):
		return "is an absolute path"
	case !filepath.IsLocal(name):
		return "leads out of the folder"
	}
	return ""
}

// checkText checks that the document is text that YAML can hold, and normalizes its line ends.
func checkText(file, text string) (string, *diag.Diagnostic) {
	text = strings.TrimPrefix(text, "\ufeff")
	if at := firstInvalid(text); at >= 0 {
		return "", textFault(file, text, at, "this is not UTF-8 text")
	}
	if at := strings.IndexFunc(text, unprintable); at >= 0 {
		r, _ := utf8.DecodeRuneInString(text[at:])
		return "", textFault(file, text, at, fmt.Sprintf("the character %U is not allowed here", r))
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), nil
}

// unprintable reports whether YAML text cannot contain a character.
func unprintable(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85 ||
		r == '\ufeff' || r == '\ufffe' || r == '\uffff'
}

func textFault(file, text string, at int, message string) *diag.Diagnostic {
	line := strings.Count(text[:at], "\n")
	column := at - strings.LastIndexByte(text[:at], '\n')
	d := &diag.Diagnostic{Code: "not-text", Severity: diag.SeverityError, Message: message,
		Pos: diag.Position{File: file, Line: line + 1, Column: column}}
	if lines := splitLines(text); utf8.ValidString(lines[line]) && strings.TrimSpace(lines[line]) != "" {
		d.Source = lines[line]
	}
	return d
}

func firstInvalid(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

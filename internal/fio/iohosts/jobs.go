package iohosts

import (
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/sshlink"
)

// Jobs is what all hosts run: the texts of the job files, with the environment of the controller that they refer to. Every
// host parses them itself, with its own files and devices.
type Jobs struct {
	Inputs   []fiojob.Input
	Reading  syntax.Reading
	Sections []string
	Env      map[string]string // variables that the texts use
	Files    map[string]string // that they include

	Backend string
	Sample  time.Duration
	// DropAfter is how late operations of a rate may be before they are dropped; 0: never dropped.
	DropAfter time.Duration
	// ReadOnly refuses to replay logs that write.
	ReadOnly bool
	// Devices may be written to, each on the host that it names.
	Devices []Device
	// SameSeed makes all hosts do the same operations with the same content.
	SameSeed bool
}

// Device is a block device that may be written to, and the consent that identifies it.
type Device struct {
	Host    string // as given in --hosts; "": on all hosts
	Path    string
	Consent blockdev.Consent
}

// Surroundings are the values of keywords in job files.
type Surroundings struct {
	CPUs     int64 `json:"cpus"`
	MemoryMB int64 `json:"memory_mb"`
	PageSize int64 `json:"page_size"`
}

// Variables that differ between hosts.
const (
	variableHost   = "BRAGG_HOST"        // its name, in a form for file names
	variableNumber = "BRAGG_HOST_NUMBER" // from 0
	variableName   = "HOSTNAME"          // the host's own name
)

// identity has the values of a host's own variables.
type identity struct {
	number   int
	fileName string
	hostname string
}

func (i identity) lookup(name string) (string, bool) {
	switch name {
	case variableHost:
		return i.fileName, true
	case variableNumber:
		return strconv.Itoa(i.number), true
	case variableName:
		return i.hostname, i.hostname != ""
	}
	return "", false
}

// Record makes a parse of the jobs record the variables and files they use, for the parse on the hosts. It parses as the
// first host would.
func (j *Jobs) Record(o fiojob.Options, first sshlink.Host) fiojob.Options {
	j.Reading, j.Sections = o.Reading, o.Sections
	j.Env, j.Files = map[string]string{}, map[string]string{}
	env, own := o.Env, identity{fileName: fileName(first), hostname: fileName(first)}
	o.Env = func(name string) (string, bool) {
		if value, ok := own.lookup(name); ok {
			return value, true
		}
		if env == nil {
			return "", false
		}
		value, ok := env(name)
		if ok {
			j.Env[name] = value
		}
		return value, ok
	}
	if o.FS != nil {
		o.FS = recordFS{o.FS, j.Files}
	}
	return o
}

// read parses the jobs as one host does.
func (j *Jobs) read(own identity, s Surroundings) (*fiojob.File, error) {
	file, list := fiojob.ParseAll(j.Inputs, fiojob.Options{
		Env: func(name string) (string, bool) {
			if value, ok := own.lookup(name); ok {
				return value, true
			}
			value, ok := j.Env[name]
			return value, ok
		},
		FS: textFS(j.Files), Host: true, Reading: j.Reading, Sections: j.Sections, PageSize: s.PageSize, CPUs: s.CPUs, MemoryMB: s.MemoryMB,
	})
	list = append(list, file.Unsupported()...)
	return file, list.Err()
}

// forHost keeps only the devices of one host.
func (j Jobs) forHost(h sshlink.Host) Jobs {
	var devices []Device
	for _, d := range j.Devices {
		if d.Host == "" || d.Host == h.Name {
			devices = append(devices, d)
		}
	}
	j.Devices = devices
	return j
}

// CheckDevices refuses consent for a host that is not among hosts.
func CheckDevices(devices []Device, hosts []sshlink.Host) error {
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	for _, d := range devices {
		found := d.Host == ""
		for _, h := range hosts {
			found = found || h.Name == d.Host
		}
		if !found {
			hint := ""
			if near := diag.Nearest(d.Host, names); near != "" {
				hint = "did you mean " + near + "?"
			}
			return usage("--device-host="+d.Host+" names none of the hosts", hint)
		}
	}
	return nil
}

// recordFS records the texts of files that are read.
type recordFS struct {
	fs.FS
	texts map[string]string
}

// ReadFile implements fs.ReadFileFS.
func (r recordFS) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(r.FS, name)
	if err == nil {
		r.texts[name] = string(text)
	}
	return text, err
}

// Stat implements fs.StatFS, for fs.Stat in package fiojob, which checks files before it reads them: without it, fs.Stat
// would open them, and wait for the writer of a named pipe.
func (r recordFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

// textFS holds texts by their file names.
type textFS map[string]string

func (t textFS) Open(name string) (fs.File, error) {
	text, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &textFile{strings.NewReader(text), name}, nil
}

// textFile is an open text, and describes itself.
type textFile struct {
	*strings.Reader
	name string
}

func (f *textFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *textFile) Close() error               { return nil }
func (f *textFile) Name() string               { return f.name }
func (f *textFile) Mode() fs.FileMode          { return 0o444 }
func (f *textFile) ModTime() time.Time         { return time.Time{} }
func (f *textFile) IsDir() bool                { return false }
func (f *textFile) Sys() any                   { return nil }

package fiojob

import (
	"path"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Directories returns the folders of directory, which may be a list.
func (j *Job) Directories() []string { return syntax.SplitNames(j.Directory, false) }

// Files returns the names that the job opens: filename, prefixed with directory. It is empty for a job without names, whose
// files fio would create.
func (j *Job) Files() []string {
	files := make([]string, len(j.Filenames))
	folders := j.Directories()
	for i, f := range j.Filenames {
		if len(folders) > 0 {
			f = path.Join(folders[0], f)
		}
		files[i] = f
	}
	return files
}

// CloneFiles returns the names that one clone opens: those of filename, or else nrfiles names made from filename_format, in
// one of the job's folders, which clones use in turn.
func (j *Job) CloneFiles(clone int) []string {
	if len(j.Filenames) > 0 {
		return j.Files()
	}
	folder := ""
	if folders := j.Directories(); len(folders) > 0 {
		folder = folders[clone%len(folders)]
	}
	names := make([]string, min(max(1, j.NrFiles), cloneFilesMax))
	for i := range names {
		name := expandName(j.FilenameFormat, j.Section, clone, i)
		if folder != "" {
			name = path.Join(folder, name)
		}
		names[i] = name
	}
	return names
}

// expandName replaces $jobname, $jobnum and $filenum, in any case.
func expandName(format, section string, clone, file int) string {
	var b strings.Builder
	for format != "" {
		word, value := "", ""
		for _, k := range [][2]string{
			{"$jobname", section}, {"$jobnum", strconv.Itoa(clone)}, {"$filenum", strconv.Itoa(file)},
		} {
			if len(format) >= len(k[0]) && strings.EqualFold(format[:len(k[0])], k[0]) {
				word, value = k[0], k[1]
			}
		}
		if word == "" {
			word, value = format[:1], format[:1]
		}
		b.WriteString(value)
		format = format[len(word):]
	}
	return b.String()
}

package session

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
)

// The folders among a bundle's attachments that a run may fill.
const (
	logsFolder   = "logs"   // of agents, one file per VM
	outputFolder = "output" // of programs of the scenario, which run there
	// programsFolder is of programs that generators run on VMs: a folder per workload, files by VM and start.
	programsFolder = "programs"
)

// outputDir makes the folder for programs of the scenario, where the user allows them; otherwise there is none.
func (x *execution) outputDir() (string, error) {
	if !x.Plan.AllowShell {
		return "", nil
	}
	return x.record.writer.AttachFolder(outputFolder)
}

// keepOutputs stores what the programs of a load wrote.
func (x *execution) keepOutputs(w load.Workload, list []load.Output) {
	start := fmt.Sprintf("%s-%d", w.VM, w.Instance)
	if w.Prefill {
		start = w.VM + "-prefill"
	}
	if w.Remove {
		start = w.VM + "-remove"
	}
	names := make([]string, len(x.Plan.Workloads))
	for i := range names {
		names[i] = x.Plan.Workloads[i].Name
	}
	folder := cmp.Or(outputFolders(names)[w.Name], fileName(w.Name))
	for _, o := range list {
		name := fmt.Sprintf("%s/%s/%s-%s", programsFolder, folder, fileName(start), o.Name)
		_ = x.record.writer.Attach(name, strings.NewReader(o.Text)) // the writer reports a bundle that cannot be written
	}
}

// outputFolders are the folders of workloads, by their names. Those that fileName makes equal, such as "a/b" and "a:b", get numbers.
func outputFolders(workloads []string) map[string]string {
	folders, taken := make(map[string]string, len(workloads)), make(map[string]bool, len(workloads))
	for _, name := range workloads {
		if _, again := folders[name]; again {
			continue
		}
		folder := fileName(name)
		for n := 2; taken[folder]; n++ {
			folder = fmt.Sprintf("%s-%d", fileName(name), n)
		}
		folders[name], taken[folder] = folder, true
	}
	return folders
}

// fileName is a name with everything replaced that a path should not have.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

// collectLogs copies the logs of the agents of running VMs into the bundle. One that fails does not keep others out.
func (x *execution) collectLogs(ctx context.Context, vms []target.VM) error {
	var errs []error
	asked := 0
	for _, vm := range vms {
		if vm.Power != target.PowerOn {
			continue
		}
		asked++
		if err := x.collectLog(ctx, vm); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("collect logs: %d of %d VMs failed: %w", len(errs), asked, errs[0])
	}
	return nil
}

// logWithin bounds how long one agent may take to return its log: a silent agent may stay silent forever.
const logWithin = time.Minute

func (x *execution) collectLog(ctx context.Context, vm target.VM) error {
	ctx, cancel := context.WithTimeout(ctx, logWithin)
	defer cancel()
	client, err := x.agents.Client(ctx, vm)
	if err != nil {
		return err
	}
	text, err := client.Log(ctx)
	if err != nil {
		return fmt.Errorf("VM %q: %w", vm.Name, err)
	}
	return x.record.writer.Attach(logsFolder+"/"+vm.Name+".log", bytes.NewReader(text))
}

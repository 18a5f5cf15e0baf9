package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
)

var oldFio = rule.Rule{
	Code:    "old-fio",
	Summary: "an old fio ran the load",
	Doc: "fio before 3.3 drew random offsets of small, time-based writes from a part of the range only after it had used every " +
		"block once. Its loads differ from those of newer versions, and so do all numbers.",
	Example: `OLTP was run by fio 2.21; versions before 3.3 write small random blocks elsewhere.`,
	Check:   checkOldFio,
}

func checkOldFio(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		e := l.Engine()
		var major, minor int
		if n, _ := fmt.Sscanf(e.Version, "%d.%d", &major, &minor); e.Name != "fio" || n < 2 || major > 3 || major == 3 && minor >= 3 {
			continue
		}
		list = append(list, in.About(l.LoadSummary, finding.Warning, "Install fio 3.3 or newer, or use the native engine.",
			"%s was run by fio %s; versions before 3.3 write small random blocks elsewhere.", in.Name(l.LoadSummary), e.Version))
	}
	return list
}

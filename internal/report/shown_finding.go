package report

import "github.com/braggdev/bragg/internal/finding"

// shownFinding is a finding as a page shows it: several of one kind in a row are one block, with their advice once at its end.
type shownFinding struct {
	Of string // the runs that it is of, where there are several
	finding.Finding
	Joined bool // goes on with the block of the one before
}

func shownFindings(list []finding.Finding) []shownFinding {
	shown := make([]shownFinding, len(list))
	for i, f := range list {
		shown[i].Finding = f
	}
	return joinKinds(shown)
}

func shownCompared(list []ComparedFinding) []shownFinding {
	shown := make([]shownFinding, len(list))
	for i := range list {
		shown[i] = shownFinding{Of: list[i].Of() + ": ", Finding: list[i].Finding}
	}
	return joinKinds(shown)
}

func joinKinds(shown []shownFinding) []shownFinding {
	for i := 1; i < len(shown); i++ {
		before, f := &shown[i-1], &shown[i]
		f.Joined = f.Code == before.Code && f.Severity == before.Severity && f.Advice == before.Advice
	}
	for i := range shown {
		if i+1 < len(shown) && shown[i+1].Joined {
			shown[i].Advice = ""
		}
	}
	return shown
}

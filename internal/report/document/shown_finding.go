package document

import "github.com/braggdev/bragg/internal/finding"

// ShownFinding is a finding as a page shows it: consecutive findings of one kind form a block with their advice once at its end.
type ShownFinding struct {
	Of string // its runs, in a comparison
	finding.Finding
	Joined bool // continues the block of the previous one
}

func ShownFindings(list []finding.Finding) []ShownFinding {
	shown := make([]ShownFinding, len(list))
	for i, f := range list {
		shown[i].Finding = f
	}
	return JoinKinds(shown)
}

func JoinKinds(shown []ShownFinding) []ShownFinding {
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

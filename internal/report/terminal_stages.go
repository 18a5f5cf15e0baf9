package report

import (
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/textio"
)

// stagesBriefMax is how many stages of a load the summary lists, sentencesBriefMax how many of its curves it answers for.
const (
	stagesBriefMax    = 12
	sentencesBriefMax = 3
)

// briefStages prints the stages of each load, and at which rate its response time leaves its floor.
func briefStages(p *textPage, d *document.Document) {
	for i := range d.Stages {
		s := &d.Stages[i]
		p.line("")
		for k, text := range s.Sentences {
			if k == sentencesBriefMax {
				p.note(textio.Plural(len(s.Sentences)-k, "more curve") + ": bragg report")
				break
			}
			p.text("", text, nil)
		}
		t := document.StagesTable(s, stagesBriefMax)
		p.table(&t)
	}
	if len(d.Stages) > 0 {
		p.note(document.StagesNote)
	}
}

// printStages prints all of them.
func printStages(p *textPage, d *document.Document) {
	for i := range d.Stages {
		s := &d.Stages[i]
		p.section("Stages of " + document.StagesName(s))
		for _, text := range s.Sentences {
			p.text("", text, p.Bold)
		}
		p.line("")
		t := document.StagesTable(s, 0)
		p.table(&t)
	}
	if len(d.Stages) > 0 {
		p.note(document.StagesNote)
	}
}

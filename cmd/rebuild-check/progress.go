package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/report"
)

// progress writes one line a stage with its time when it ends, and, on a terminal, a live line of
// the stages that are under way.
type progress struct {
	mutex  sync.Mutex
	w      io.Writer
	live   bool
	active []activeStage
	stop   chan struct{}
	ended  sync.WaitGroup
}

type activeStage struct {
	name  string
	since time.Time
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, live: terminal(w), stop: make(chan struct{})}
	if p.live {
		p.ended.Go(p.tick)
	}
	return p
}

// terminal tells whether w is one that understands a carriage return.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Name() != os.DevNull
}

func (p *progress) stage(s evidence.Stage) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if s.Seconds < 0 {
		p.active = append(p.active, activeStage{s.Name, time.Now()})
		if !p.live && strings.HasPrefix(s.Name, "cluster ") {
			fmt.Fprintf(p.w, "%7s  %s: creating\n", "", report.Clean(s.Name))
		}
	} else {
		p.active = slices.DeleteFunc(p.active, func(a activeStage) bool { return a.name == s.Name })
		p.erase()
		fmt.Fprintf(p.w, "%6.1fs  %s: %s\n", s.Seconds, report.Clean(s.Name), report.Clean(s.Note))
	}
	p.draw()
}

func (p *progress) tick() {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.mutex.Lock()
			p.erase()
			p.draw()
			p.mutex.Unlock()
		case <-p.stop:
			return
		}
	}
}

func (p *progress) erase() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p *progress) draw() {
	if !p.live || len(p.active) == 0 {
		return
	}
	var parts []string
	for _, a := range p.active {
		parts = append(parts, fmt.Sprintf("%s %.0fs", a.name, time.Since(a.since).Seconds()))
	}
	line := []rune(report.Clean(strings.Join(parts, ", ")))
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(line[:min(len(line), 78)]))
}

// close ends the live line.
func (p *progress) close() {
	close(p.stop)
	p.ended.Wait()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.erase()
}

//! Times of stages by the device's clock.

use std::time::Duration;

use cust::event::{Event, EventFlags};
use cust::stream::Stream;
use fmm_core::{Error, Stage, StageTimes};

use crate::Gpu;
use crate::error::device as told;

/// Marks in the queue; `None` for time that belongs to no stage.
pub struct Clock<'a> {
    gpu: &'a Gpu,
    marks: Vec<(Option<Stage>, Event)>,
    /// Work that is queued on another stream.
    aside: Vec<(Stage, Event, Event)>,
}

impl<'a> Clock<'a> {
    /// Begins.
    pub fn start(gpu: &'a Gpu) -> Result<Self, Error> {
        let mut clock = Clock { gpu, marks: vec![], aside: vec![] };
        clock.mark(None)?;
        Ok(clock)
    }

    /// The end of a stage, in the queue.
    pub fn mark(&mut self, stage: Option<Stage>) -> Result<(), Error> {
        self.marks.push((stage, recorded(self.gpu.stream())?));
        Ok(())
    }

    /// Times what `work` queues on another stream, which may run at the same time.
    pub fn beside(
        &mut self,
        stream: &Stream,
        stage: Stage,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let begin = recorded(stream)?;
        work()?;
        self.aside.push((stage, begin, recorded(stream)?));
        Ok(())
    }

    /// Waits for all of them and adds their times.
    pub fn read(self, times: &mut StageTimes) -> Result<(), Error> {
        self.gpu.finish()?;
        let mut sums: Vec<(Stage, Duration)> = vec![];
        for pair in self.marks.windows(2) {
            let span = pair[1].1.elapsed(&pair[0].1).map_err(told("cannot time the GPU"))?;
            let Some(stage) = pair[1].0 else { continue };
            match sums.iter_mut().find(|s| s.0 == stage) {
                Some(sum) => sum.1 += span,
                None => sums.push((stage, span)),
            }
        }
        for (stage, begin, end) in &self.aside {
            let span = end.elapsed(begin).map_err(told("cannot time the GPU"))?;
            times.add(*stage, span);
        }
        sums.into_iter().for_each(|(stage, span)| times.add(stage, span));
        Ok(())
    }
}

fn recorded(stream: &Stream) -> Result<Event, Error> {
    let event = Event::new(EventFlags::DEFAULT).map_err(told("cannot time the GPU"))?;
    event.record(stream).map_err(told("cannot time the GPU"))?;
    Ok(event)
}

//! Times of stages by the device's clock.

use std::time::Duration;

use cust::event::{Event, EventFlags};
use fmm_core::{Error, Stage, StageTimes};

use crate::Gpu;
use crate::error::device as told;

/// Marks in the queue; `None` for time that belongs to no stage.
pub struct Clock<'a> {
    gpu: &'a Gpu,
    marks: Vec<(Option<Stage>, Event)>,
}

impl<'a> Clock<'a> {
    /// Begins.
    pub fn start(gpu: &'a Gpu) -> Result<Self, Error> {
        let mut clock = Clock { gpu, marks: vec![] };
        clock.mark(None)?;
        Ok(clock)
    }

    /// The end of a stage, in the queue.
    pub fn mark(&mut self, stage: Option<Stage>) -> Result<(), Error> {
        let event = Event::new(EventFlags::DEFAULT).map_err(told("cannot time the GPU"))?;
        event.record(self.gpu.stream()).map_err(told("cannot time the GPU"))?;
        self.marks.push((stage, event));
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
        sums.into_iter().for_each(|(stage, span)| times.add(stage, span));
        Ok(())
    }
}

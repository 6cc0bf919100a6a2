//! The folders of CUHK-PEDES: each holds the pictures of one older data set, with that one's file
//! format and resolution. Which folder a picture is in tells neither its split nor its person.

use image::ImageFormat;

use super::preset::PlannedImage;
use super::stream::Stream;

/// A folder under `imgs/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Archive {
    CamA,
    CamB,
    Cuhk01,
    Cuhk03,
    Market,
    TestQuery,
    TrainQuery,
}

impl Archive {
    pub(crate) const ALL: [Archive; 7] = [
        Self::CamA,
        Self::CamB,
        Self::Cuhk01,
        Self::Cuhk03,
        Self::Market,
        Self::TestQuery,
        Self::TrainQuery,
    ];

    /// As frequent as in the real test split.
    pub(crate) fn draw(stream: &mut Stream) -> Self {
        stream.weighted(&[
            (Self::TrainQuery, 1110.0),
            (Self::TestQuery, 653.0),
            (Self::Cuhk03, 480.0),
            (Self::Market, 413.0),
            (Self::Cuhk01, 320.0),
            (Self::CamA, 49.0),
            (Self::CamB, 49.0),
        ])
    }

    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::CamA => "cam_a",
            Self::CamB => "cam_b",
            Self::Cuhk01 => "CUHK01",
            Self::Cuhk03 => "CUHK03",
            Self::Market => "Market",
            Self::TestQuery => "test_query",
            Self::TrainQuery => "train_query",
        }
    }

    pub(crate) fn format(self) -> ImageFormat {
        match self {
            Self::CamA | Self::CamB => ImageFormat::Bmp,
            Self::Cuhk01 => ImageFormat::Png,
            _ => ImageFormat::Jpeg,
        }
    }

    /// Path under `imgs/`.
    pub(crate) fn file_path(self, planned: &PlannedImage) -> String {
        let extension = match self.format() {
            ImageFormat::Bmp => "bmp",
            ImageFormat::Png => "png",
            _ => "jpg",
        };
        format!("{}/p{}_s{}.{extension}", self.folder(), planned.pid, planned.serial)
    }

    /// Width and height in pixels: fixed where the source normalised its pictures, else those of
    /// a detection box.
    pub(crate) fn frame(self, stream: &mut Stream) -> (u32, u32) {
        match self {
            Self::CamA | Self::CamB => (48, 128),
            Self::Cuhk01 => (60, 160),
            Self::Market => (64, 160),
            Self::Cuhk03 | Self::TestQuery | Self::TrainQuery => {
                let height = stream.range(160.0, 256.0);
                let aspect = stream.range(0.37, 0.41);
                ((height * aspect) as u32, height as u32)
            }
        }
    }
}
